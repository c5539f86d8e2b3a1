use strict;
use warnings;
use File::Temp 'tempdir';
use FindBin;
use Test::More;

my $logq   = "$FindBin::Bin/../bin/logq";
my $folder = tempdir(CLEANUP => 1);

sub file {
    my ($name, @lines) = @_;
    open my $file, '>', "$folder/$name" or die $!;
    print $file "$_\n" for @lines;
    close $file;
}

# Return the exit status and what is printed.
sub logq {
    my (@words) = @_;
    my $out = qx{cd $folder && $^X $logq @words 2>&1};
    return ($? >> 8, $out);
}

file(
    'a.log',
    '2026-01-05T09:00:00Z INFO web: up',
    'not a line of a log',
    '2026-01-05T09:00:10Z ERROR billing: no money',
);

is_deeply [logq('count a.log')], [0, "DEBUG 0\nINFO 1\nWARN 0\nERROR 1\n"], 'count';
is_deeply [logq('show --level INFO a.log')], [0, "2026-01-05T09:00:00Z INFO web: up\n"], 'show';
is_deeply [logq('count b.log')], [2, "logq: b.log: No such file or directory\n"], 'no file';

done_testing;
