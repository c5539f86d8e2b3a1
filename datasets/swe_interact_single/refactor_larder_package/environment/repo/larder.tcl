#!/usr/bin/env tclsh
# larder: what is in the larder, how much of it, and until when.

set file larder.txt
if {[info exists env(LARDER_FILE)]} {
    set file $env(LARDER_FILE)
}
array set value {}
array set unit {}
array set until {}

proc fail {message {status 1}} {
    puts stderr "larder: $message"
    exit $status
}

# Read the stock: per line a name, a value in g, ml or pcs, the unit, and a date or nothing.
proc read_stock {} {
    global file value unit until
    if {![file exists $file]} {
        return
    }
    set in [open $file r]
    fconfigure $in -encoding utf-8
    set number 0
    while {[gets $in line] >= 0} {
        incr number
        if {$line eq "" || [string index $line 0] eq "#"} {
            continue
        }
        set fields [split $line \t]
        if {[llength $fields] != 4 || ![string is double -strict [lindex $fields 1]]} {
            close $in
            fail "$file:$number: bad line"
        }
        lassign $fields name v u d
        set value($name) $v
        set unit($name) $u
        set until($name) $d
    }
    close $in
}

proc add {words} {
    global file value unit until
    if {[llength $words] < 2 || [llength $words] > 3} {
        fail "usage: larder add NAME AMOUNT \[DATE\]" 2
    }
    lassign $words name amount date
    if {[string trim $name] eq "" || [regexp {[\t\n]} $name]} {
        fail "bad name: $name" 2
    }
    if {![regexp {^(\d+(?:\.\d+)?)(kg|g|ml|l|pcs)?$} $amount -> v u] || $v == 0} {
        fail "bad amount: $amount" 2
    }
    if {$u eq "kg"} {
        set v [expr {$v * 1000.0}]
        set u g
    } elseif {$u eq "l"} {
        set v [expr {$v * 1000.0}]
        set u ml
    } elseif {$u eq ""} {
        set u pcs
    }
    if {$date ne "" && (![regexp {^\d{4}-\d\d-\d\d$} $date]
            || [catch {clock format [clock scan $date -format %Y-%m-%d] -format %Y-%m-%d} same]
            || $same ne $date)} {
        fail "bad date: $date" 2
    }
    read_stock
    if {[info exists value($name)]} {
        if {$unit($name) ne $u} {
            fail "$name is kept in $unit($name), not $u"
        }
        set value($name) [expr {$value($name) + $v}]
        if {$until($name) eq "" || ($date ne "" && [string compare $date $until($name)] < 0)} {
            set until($name) $date
        }
    } else {
        set value($name) $v
        set unit($name) $u
        set until($name) $date
    }
    set out [open $file w]
    fconfigure $out -encoding utf-8 -translation lf
    foreach item [lsort [array names value]] {
        set n [string trimright [string trimright [format %.3f $value($item)] 0] .]
        puts $out "$item\t$n\t$unit($item)\t$until($item)"
    }
    close $out
    set n $value($name)
    set u $unit($name)
    if {$u eq "g" && $n >= 1000} {
        set n [expr {$n / 1000.0}]
        set u kg
    } elseif {$u eq "ml" && $n >= 1000} {
        set n [expr {$n / 1000.0}]
        set u l
    } elseif {$u eq "pcs" && $n == 1} {
        set u pc
    }
    puts "$name: [string trimright [string trimright [format %.3f $n] 0] .] $u"
}

proc take {words} {
    global file value unit until
    if {[llength $words] != 2} {
        fail "usage: larder take NAME AMOUNT" 2
    }
    lassign $words name amount
    if {![regexp {^(\d+(?:\.\d+)?)(kg|g|ml|l|pcs)?$} $amount -> v u] || $v == 0} {
        fail "bad amount: $amount" 2
    }
    if {$u eq "kg"} {
        set v [expr {$v * 1000.0}]
        set u g
    } elseif {$u eq "l"} {
        set v [expr {$v * 1000.0}]
        set u ml
    } elseif {$u eq ""} {
        set u pcs
    }
    read_stock
    if {![info exists value($name)]} {
        fail "no such item: $name"
    }
    if {$unit($name) ne $u} {
        fail "$name is kept in $unit($name), not $u"
    }
    set n $value($name)
    if {$u eq "g" && $n >= 1000} {
        set n [expr {$n / 1000.0}]
        set u kg
    } elseif {$u eq "ml" && $n >= 1000} {
        set n [expr {$n / 1000.0}]
        set u l
    } elseif {$u eq "pcs" && $n == 1} {
        set u pc
    }
    set text "[string trimright [string trimright [format %.3f $n] 0] .] $u"
    if {$v > $value($name) + 0.0005} {
        fail "only $text of $name"
    }
    set value($name) [expr {$value($name) - $v}]
    set gone [expr {$value($name) < 0.0005}]
    if {!$gone} {
        set n $value($name)
        set u $unit($name)
        if {$u eq "g" && $n >= 1000} {
            set n [expr {$n / 1000.0}]
            set u kg
        } elseif {$u eq "ml" && $n >= 1000} {
            set n [expr {$n / 1000.0}]
            set u l
        } elseif {$u eq "pcs" && $n == 1} {
            set u pc
        }
        set text "[string trimright [string trimright [format %.3f $n] 0] .] $u"
    } else {
        unset value($name) unit($name) until($name)
        set text none
    }
    set out [open $file w]
    fconfigure $out -encoding utf-8 -translation lf
    foreach item [lsort [array names value]] {
        set n [string trimright [string trimright [format %.3f $value($item)] 0] .]
        puts $out "$item\t$n\t$unit($item)\t$until($item)"
    }
    close $out
    puts "$name: $text left"
}

proc list_all {words} {
    global value unit until
    if {[llength $words] != 0} {
        fail "usage: larder list" 2
    }
    read_stock
    foreach name [lsort [array names value]] {
        set n $value($name)
        set u $unit($name)
        if {$u eq "g" && $n >= 1000} {
            set n [expr {$n / 1000.0}]
            set u kg
        } elseif {$u eq "ml" && $n >= 1000} {
            set n [expr {$n / 1000.0}]
            set u l
        } elseif {$u eq "pcs" && $n == 1} {
            set u pc
        }
        set text "[string trimright [string trimright [format %.3f $n] 0] .] $u"
        puts [string trimright [format "%-20s %10s  %s" $name $text $until($name)]]
    }
}

proc due {words} {
    global value unit until
    if {[llength $words] != 1} {
        fail "usage: larder due DATE" 2
    }
    set date [lindex $words 0]
    if {![regexp {^\d{4}-\d\d-\d\d$} $date]
            || [catch {clock format [clock scan $date -format %Y-%m-%d] -format %Y-%m-%d} same]
            || $same ne $date} {
        fail "bad date: $date" 2
    }
    read_stock
    set found {}
    foreach name [lsort [array names value]] {
        if {$until($name) ne "" && [string compare $until($name) $date] <= 0} {
            lappend found [list $until($name) $name]
        }
    }
    if {[llength $found] == 0} {
        puts nothing
    }
    foreach pair [lsort -index 0 $found] {
        lassign $pair day name
        set n $value($name)
        set u $unit($name)
        if {$u eq "g" && $n >= 1000} {
            set n [expr {$n / 1000.0}]
            set u kg
        } elseif {$u eq "ml" && $n >= 1000} {
            set n [expr {$n / 1000.0}]
            set u l
        } elseif {$u eq "pcs" && $n == 1} {
            set u pc
        }
        puts "$day  $name ([string trimright [string trimright [format %.3f $n] 0] .] $u)"
    }
}

proc help {} {
    puts {usage: larder COMMAND [WORD...]

  larder add NAME AMOUNT [DATE]
  larder due DATE
  larder help
  larder list
  larder take NAME AMOUNT}
}

set words [lassign $argv command]
switch -- $command {
    add { add $words }
    due { due $words }
    list { list_all $words }
    take { take $words }
    help - "" { help }
    default { fail "unknown command: $command" 2 }
}
