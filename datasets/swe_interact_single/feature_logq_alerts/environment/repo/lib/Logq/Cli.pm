package Logq::Cli;

use strict;
use warnings;
use Logq::Line qw(parse_line LEVELS);

my $USAGE = <<'END';
usage: logq count LOG...
       logq show [--level LEVEL] LOG...
END

my %COMMANDS = (
    count => \&count,
    show  => \&show,
);

# Run a command; return the exit status.
sub main {
    my ($name, @words) = @_;
    my $run = $COMMANDS{ $name // '' };
    return usage() unless $run;
    my $status = eval { $run->(@words) };
    return $status if defined $status;
    print STDERR "logq: $@";
    return 2;
}

sub usage {
    print STDERR $USAGE;
    return 2;
}

# Return the lines of some files that are lines of a log.
sub read_logs {
    my @lines;
    for my $path (@_) {
        open my $file, '<', $path or die "$path: $!\n";
        while (my $text = <$file>) {
            chomp $text;
            my $line = parse_line($text);
            push @lines, $line if $line;
        }
    }
    return @lines;
}

# Say how many lines there are of each level.
sub count {
    my (@paths) = @_;
    return usage() unless @paths;
    my %count;
    $count{ $_->{level} }++ for read_logs(@paths);
    print "$_ ", $count{$_} // 0, "\n" for LEVELS;
    return 0;
}

# Print the lines, or those of one level.
sub show {
    my (@words) = @_;
    my $level;
    (undef, $level, @words) = @words if @words && $words[0] eq '--level';
    return usage() unless @words;
    for my $line (read_logs(@words)) {
        print "$line->{text}\n" if !defined $level || $line->{level} eq $level;
    }
    return 0;
}

1;
