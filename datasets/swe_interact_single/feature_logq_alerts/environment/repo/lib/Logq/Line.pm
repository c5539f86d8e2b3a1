package Logq::Line;

# One line of a log: `2026-01-05T09:00:00Z ERROR billing: what happened`.

use strict;
use warnings;
use Exporter 'import';
use Time::Local 'timegm';

our @EXPORT_OK = qw(parse_line epoch LEVELS);

use constant LEVELS => qw(DEBUG INFO WARN ERROR);

# Return a time as seconds since 1970, or undef if it is none.
sub epoch {
    my ($text) = @_;
    my ($year, $month, $day, $hour, $minute, $second) =
        $text =~ /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z\z/
        or return undef;
    return eval { timegm($second, $minute, $hour, $day, $month - 1, $year) };
}

# Return the parts of a line, or undef if it is none.
sub parse_line {
    my ($text) = @_;
    my ($time, $level, $service, $message) =
        $text =~ /^(\S+) (DEBUG|INFO|WARN|ERROR) (\S+): (.*)\z/
        or return undef;
    my $epoch = epoch($time);
    return undef unless defined $epoch;
    return {
        text    => $text,
        time    => $time,
        epoch   => $epoch,
        level   => $level,
        service => $service,
        message => $message,
    };
}

1;
