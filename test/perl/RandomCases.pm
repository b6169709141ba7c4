# Cases of the random tests: scripts that are run, and reduced if they fail.
#
# A case is a list of pieces; each is some lines for psql.  A check is a piece that
# prints one line starting with "same" if all is well.  When a check fails, pieces are
# left out as long as it fails in the same way.  So are elements of the lists within
# them, which list_of() and element() have made, and the numbers of rows are reduced.

package RandomCases;

use strict;
use warnings;

use Exporter 'import';
use File::Temp;
use FindBin;
use Getopt::Long;
use List::Util qw(min);
use POSIX ();
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(options run_seeds check setting fresh_settings element list_of quote);

# How often a failing case is run again to reduce it.
my $MOST_TRIES = 400;

# Marks of lists and their elements in the text of a piece: LIST element NEXT element
# END, where an element is ID its number TEXT its text.
my ($LIST, $NEXT, $END, $ID, $TEXT) = map { chr } 1 .. 5;

my $database = "pg_gpusort_random_$$";
my %option = (seeds => '', checks => 12, gpu => 0, kills => 0, verbose => 0);
my ($sorts, $builds, $lost) = (0, 0, 0);

# Seconds to wait for what has to come.
my $timeout = $ENV{PG_TEST_TIMEOUT_DEFAULT} // 180;

# ---- Text ----

my $elements = 0;

# element TEXT [ELEMENT]: returns an element of a list.  If it belongs to another
# element, it is left out together with that one.
sub element
{
	my ($text, $with) = @_;
	my $number = defined $with ? ($with =~ /^$ID(\d+)/)[0] : ++$elements;

	return defined $number ? "$ID$number$TEXT$text" : $text;
}

# list_of ELEMENT...: returns a list as in SQL, with commas.
sub list_of { return $LIST . join($NEXT, @_) . $END; }

sub plain
{
	my ($text) = @_;

	$text =~ s/$ID\d+$TEXT//g;
	1 while $text =~ s/$LIST([^$LIST$END]*)$END/join(', ', grep { $_ ne '' } split(m{$NEXT}, $1))/e;
	return $text;
}

# Returns the text without an element.
sub without
{
	my ($text, $number) = @_;
	my $inner = qr/($LIST(?:[^$LIST$END]++|(?-1))*$END)/;

	$text =~ s/$ID$number$TEXT(?:[^$LIST$NEXT$END]|$inner)*(?=[$NEXT$END])//g;
	return $text;
}

sub quote { my ($text) = @_; $text =~ s/'/''/g; return "'$text'"; }

# setting NAME, VALUE: returns a piece.
sub setting { return "SET $_[0] = $_[1];\n"; }

# Returns the piece before the settings of a check.
sub fresh_settings
{
	# Queries that hang fail, and cursors are killed between two moves.
	my @for_kills = (setting('statement_timeout', "'${timeout}s'"), setting('random.pause', 0.01));

	return join('', "RESET ALL;\nSET client_min_messages = error;\n",
		setting('pg_gpusort.backend', $option{gpu} ? 'gpu' : 'cpu'), $option{kills} ? @for_kills : ());
}

# check CALL: returns a piece that calls a function; it returns "same ..." if all is
# well.
sub check
{
	my ($call) = @_;

	return { call => $option{kills} ? 'check_or_lost(' . quote($call) . ')' : $call };
}

# ---- Running ----

# Runs a script and returns its output.
sub run_script
{
	my ($script, @arguments) = @_;
	my $file = File::Temp->new(SUFFIX => '.sql');
	my @command = ('psql', '-X', '-q', '-A', '-t', @arguments, '-f', $file->filename);

	print $file $script;
	close $file;
	open(my $pipe, '-|', join(' ', map { "'$_'" } @command) . ' 2>&1')
	  or die "could not run psql: $!\n";
	my $output = do { local $/; <$pipe> } // '';
	close $pipe;
	return $output;
}

# The same, but waits for a server that has crashed to come back.
sub psql
{
	my ($script, @arguments) = @_;
	my $output;

	for my $try (1 .. 6000)
	{
		$output = run_script($script, @arguments);
		return $output
		  if $output !~ /^psql: error: .*(?:in recovery|starting up|shutting down|refused|No such file)/;
		usleep(100_000);
	}
	die "the server is gone: $output";
}

# Removes what another case has left, and ends its sessions.
my $clean = <<'END';
SELECT count(pg_terminate_backend(pid, 10000)) AS ended FROM pg_stat_activity
WHERE application_name = 'old snapshot' AND datname = current_database() \gset
DROP TABLE IF EXISTS t1, t2 CASCADE;
END

sub script_of
{
	my ($case) = @_;
	my $script = "LOAD 'pg_gpusort';\nSET client_min_messages = error;\n\\set VERBOSITY terse\n"
	  . $clean
	  . join('', map { "\\set $_ $case->{variables}{$_}\n" } sort keys %{ $case->{variables} });
	my $number = 0;

	foreach my $piece (@{ $case->{pieces} })
	{
		$script .= ref $piece
		  ? '\echo check ' . $number++ . "\nSELECT " . plain($piece->{call}) . ";\n"
		  : plain($piece);
	}
	return $script;
}

# The same, with the counts of what it has done.
sub counting_script
{
	my ($case) = @_;

	return "SELECT sum(sorts) AS sorts, sum(index_builds) AS builds FROM pg_stat_gpusort \\gset before_\n"
	  . script_of($case)
	  . "\\echo check counts\n"
	  . "SELECT sum(sorts) - :before_sorts, sum(index_builds) - :before_builds FROM pg_stat_gpusort;\n";
}

# Runs a case.  Returns the output of each check that did not succeed, by number.
sub failures
{
	my ($case) = @_;
	my $checks = grep { ref } @{ $case->{pieces} };
	my ($start, @parts) = split /^check (?:\d+|counts)\n/m, psql(counting_script($case), '-d', $database), -1;
	my %failed;

	return (0 => $start) if $start ne '';
	foreach my $n (0 .. $checks - 1)
	{
		my $part = $parts[$n] // 'no output';

		$lost++ if $part =~ /^same, as far as the GPU was there$/;
		$failed{$n} = $part if $part !~ /\Asame\b[^\n]*\n\z/;
	}
	if (($parts[$checks] // '') =~ /^(\d+)\|(\d+)$/)
	{
		$sorts += $1;
		$builds += $2;
	}
	return %failed;
}

# Returns what two failures with the same cause have in common.
sub kind_of
{
	my ($message) = @_;

	$message =~ s/^psql:[^ ]*: //gm;
	$message =~ s/\d+/N/g;
	return (split /\n/, $message)[0] // '';
}

# ---- Making cases smaller ----

# Returns whether a case still fails in this way.
sub still_fails
{
	my ($case, $kind) = @_;
	my %failed;

	return 0 if $case->{tries}-- <= 0;
	%failed = failures($case);
	return %failed && kind_of((values %failed)[0]) eq $kind;
}

# Replaces the case by a changed one, if that fails, too.
sub try_change
{
	my ($case, $kind, %change) = @_;
	my %changed = (%$case, %change);
	my $fails = still_fails(\%changed, $kind);

	$case->{tries} = $changed{tries};
	%$case = %changed if $fails;
	return $fails;
}

sub fewer_rows
{
	my ($case, $kind) = @_;

	foreach my $name (grep { /rows/ } sort keys %{ $case->{variables} })
	{
		my $step = int(($case->{variables}{$name} + 1) / 2);

		while ($step > 0)
		{
			my %variables = %{ $case->{variables} };

			$variables{$name} -= $step;
			$step = $step == 1 ? 0 : int(($step + 1) / 2)
			  unless $variables{$name} >= 0 && try_change($case, $kind, variables => \%variables);
		}
	}
}

# Returns whether any piece could be left out.
sub fewer_pieces
{
	my ($case, $kind) = @_;
	my $before = @{ $case->{pieces} };

	for (my $p = $#{ $case->{pieces} }; $p >= 0; $p--)
	{
		my @pieces = @{ $case->{pieces} };

		next if ref $pieces[$p];
		splice @pieces, $p, 1;
		try_change($case, $kind, pieces => \@pieces);
	}
	return @{ $case->{pieces} } < $before;
}

sub fewer_elements
{
	my ($case, $kind) = @_;
	my %numbers = map { $_ => 1 } map { /$ID(\d+)/g } map { ref $_ ? $_->{call} : $_ } @{ $case->{pieces} };
	my $fewer = 0;

	foreach my $number (sort { $b <=> $a } keys %numbers)
	{
		my @pieces = map {
			ref $_ ? { call => without($_->{call}, $number) } : without($_, $number)
		} @{ $case->{pieces} };

		$fewer = 1 if try_change($case, $kind, pieces => \@pieces);
	}
	return $fewer;
}

# Prints the first failure of a case, reduced as far as possible.
sub explain_failure
{
	my ($case, %failed) = @_;
	my ($first) = sort { $a <=> $b } keys %failed;
	my $message = $failed{$first};
	my $kind = kind_of($message);
	my $n = -1;
	my $alone = { %$case, tries => $MOST_TRIES,
		pieces => [ grep { !ref $_ || ++$n == $first } @{ $case->{pieces} } ] };

	diag("check $first:\n" . substr($message, 0, 2000));
	if ($option{kills} || !still_fails($alone, $kind))
	{
		diag($option{kills} ? 'All of it:' : 'It does not fail alone; all of it:');
		$alone = $case;
	}
	else
	{
		fewer_rows($alone, $kind);
		1 while fewer_pieces($alone, $kind) + fewer_elements($alone, $kind);
		fewer_rows($alone, $kind);
	}
	diag("To see it, run this in an empty database, with psql -f from the root of the tree:\n",
		"$case->{preparation}", script_of($alone));
}

# ---- Kills of the device process ----

# The seconds after which the server kills a device process that does not respond.
my $response_seconds = 1;

# Stops the device process at random times, for random times, and lets it go on or kills it.
# Some stops are longer than the server waits.  A query that meets a stop waits in the midst of its
# work, so that a kill after a stop hits one.  Kills become rarer, since the server starts a process that
# ends early anew later and later.  The process is found without a connection, whose
# snapshot others could see.  Does not return; writes what was done at its end.
sub stop_and_kill
{
	my ($service, $output) = @_;
	my %done = map { $_ => 0 } 'killed', 'stopped', 'stopped for long';
	my $parent = getppid();
	my ($last, $next_kill) = (0, 0);
	my $end = 0;

	srand $option{first};
	local $SIG{TERM} = sub { $end = 1; };
	# At least one is killed, however fast the cases are.
	until ($end && $done{'killed'} > 0 || getppid() != $parent)
	{
		usleep(rand(150_000));
		my ($pid) = `ps -o pid= --ppid $service` =~ /(\d+)/ or next;

		$next_kill = time() + 0.5 + rand(min(20, 2 * $done{'killed'})) if $pid != $last;
		$last = $pid;
		my $kind = time() > $next_kill ? 'killed' : rand() < 0.015 ? 'stopped for long' : 'stopped';

		kill('STOP', $pid) or next;
		usleep($kind eq 'killed' ? rand(150_000) : $kind eq 'stopped' ? rand(40_000) :
			  (0.5 + rand(2)) * $response_seconds * 1_000_000);
		$done{$kind}++ if kill($kind eq 'killed' ? 'KILL' : 'CONT', $pid);
	}
	syswrite $output, join(', ', map { "$_ $done{$_}" } sort keys %done);
	POSIX::_exit(0);
}

# Waits until the GPU sorts and nothing is left of other sorts.  Returns what there is instead.
sub wait_for_gpu
{
	my $output;

	foreach my $try (1 .. 10 * $timeout)
	{
		$output = psql("SELECT sort_on_gpu() || what_is_left();\n", '-d', $database);
		last if $output eq "\n";
		usleep(100_000);
	}
	chomp $output;
	return $output;
}

# Starts the process that does so.  Returns its number and where it writes.
sub start_killer
{
	my $problem = wait_for_gpu();
	my ($service) = psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_gpusort service';\n",
		'-d', $database) =~ /^(\d+)$/m;

	BAIL_OUT("the server must have a GPU: $problem\n") if $problem ne '';
	psql("ALTER SYSTEM SET pg_gpusort.device_timeout = '${response_seconds}s';\n"
		  . "SELECT pg_reload_conf(), pg_stat_gpusort_reset();\n", '-d', $database);
	pipe(my $input, my $output) or die "could not make a pipe: $!\n";
	my $killer = fork() // die "could not fork: $!\n";
	stop_and_kill($service, $output) if $killer == 0;
	return ($killer, $input);
}

# Ends it.  Then the GPU is used again, and nothing is left behind.
sub end_killer
{
	my ($killer, $input) = @_;
	my $done;

	kill 'TERM', $killer;
	waitpid $killer, 0;
	sysread $input, $done, 1000;
	like($done, qr/^killed [1-9]/, "the device process: $done");
	note("checks that ended with the error of a lost GPU: $lost");
	note(psql("SELECT 'sorts on the GPU: ' || coalesce(sum(sorts), 0) FROM pg_stat_gpusort WHERE backend = 'gpu';\n"
			  . "SELECT reason || ': ' || sorts FROM pg_stat_gpusort_fallbacks WHERE sorts > 0;\n", '-d', $database));
	psql("ALTER SYSTEM RESET pg_gpusort.device_timeout;\nSELECT pg_reload_conf();\n", '-d', $database);
	is(wait_for_gpu(), '', 'the GPU sorts, and nothing is left of other sorts');
}

# ---- Seeds ----

# options DEFAULT_SEEDS: returns the options of the command line as a hash.
sub options
{
	my ($seeds) = @_;

	$option{seeds} = $seeds;
	GetOptions(\%option, 'seeds=s', 'checks=i', 'rows=i', 'gpu', 'kills', 'parallel', 'verbose') or exit 2;
	$option{seeds} =~ /^(\d+)(?:-(\d+))?$/
	  or die "--seeds takes a number or FIRST-LAST\n";
	@option{qw(first last)} = ($1, $2 // $1);
	return %option;
}

sub run_seed
{
	my ($seed, $preparation, $make) = @_;
	my ($case, %failed);

	srand $seed;
	$elements = 0;
	$case = $make->($seed);
	$case->{preparation} = $preparation;
	$case->{variables}{seed} = $seed;
	diag(script_of($case)) if $option{verbose};
	%failed = failures($case);
	ok(!%failed, "seed $seed") or explain_failure($case, %failed);
}

# Runs the seeds of options().  FILES are SQL scripts in the tree that prepare the
# database; their output must match WORKS.  MAKE makes the case of a seed, with members
# pieces and variables.
sub run_seeds
{
	my ($files, $works, $make) = @_;
	my @killer;

	push @$files, 'test/random/kill_checks.sql' if $option{kills};
	my $preparation = join('', map { "\\i $_\n" } @$files);
	my $maintenance = $ENV{PGDATABASE} // 'postgres';
	# The snapshots of other sessions would keep rows in one index that are not in the
	# other.
	my $others = psql("SELECT 'others: ' || count(*) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();\n", '-d', $maintenance);
	BAIL_OUT("the server must have no other clients\n") unless $others =~ /others: 0\b/;

	my $output = psql("CREATE DATABASE $database;\n", '-d', $maintenance);

	chdir "$FindBin::RealBin/../.." or die "could not enter the root of the tree: $!\n";
	$output .= psql("\\set ON_ERROR_STOP on\n$preparation", '-d', $database);
	ok($output =~ $works && $output !~ /ERROR/, 'the comparison works') or diag($output);
	@killer = start_killer() if $option{kills};
	run_seed($_, $preparation, $make) foreach $option{first} .. $option{last};
	end_killer(@killer) if $option{kills};
	note("seeds $option{first} to $option{last}: $sorts sorts, $builds index builds");
	psql("DROP DATABASE $database WITH (FORCE);\n", '-d', $maintenance);
	done_testing();
}

1;
