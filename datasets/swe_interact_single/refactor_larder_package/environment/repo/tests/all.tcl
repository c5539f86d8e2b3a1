# Run all tests in this folder; exit with 1 if one fails.
package require tcltest 2.5
tcltest::configure -testdir [file dirname [file normalize [info script]]] -singleproc 1 {*}$argv
exit [tcltest::runAllTests]
