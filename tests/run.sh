#!/usr/bin/env bash
# The whole suite from a bare checkout: brings what it needs into .venv, checks the sources, runs
# every test. Needs Python 3.11, Java 17 and, for the kernel's tests, a C compiler.
#
#   tests/run.sh            everything, in some 20 minutes on two cores
#   tests/run.sh --long     with the long schedules
#   tests/run.sh --checks   the checks of the sources alone
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/prepare-venv.sh
. "$root/tools/prepare-venv.sh"

long=""
only_checks=""
for argument in "$@"; do
    case "$argument" in
        --long) long=yes ;;
        --checks) only_checks=yes ;;
        *) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
    esac
done

require_tools
prepare_venv spark connect cli test fuzz lint
cd "$root"
export PATH="$venv/bin:$PATH"
# Every process, Spark's workers included, runs the checkout's sources, not the installed copy.
export PYTHONPATH="$root"
unset SPARK_HOME
# Hundreds of processes here import numpy; each thread of its BLAS spins for a tenth of a second.
export OPENBLAS_NUM_THREADS=1

failed=""
cache="$venv/pytest-cache"  # of one step: the names of the tests that failed in it

# The names of the tests that failed in this step, where it ran any, below its own.
failed_tests() {
    found="$cache/v/cache/lastfailed"
    lines=$(sed -n 's/^ *"\(.*\)": true,*$/    \1/p' "$found" 2>/dev/null) || true
    printf '%s' "${lines:+
$lines}"
}

# Run one named step to its end; the run goes on whatever comes out. Tests that failed are named
# again at its end, many screens below.
step() {
    name=$1
    began=$SECONDS
    shift
    say "== $name"
    rm -rf "$cache"
    "$@" </dev/null || failed="$failed
  $name (exit code $?)$(failed_tests)"
    say "   ($((SECONDS - began)) s)"
}

# Whether plain pytest finds its tests: no step runs it, all have marks and profiles of their own.
collect() {
    found=$(python -m pytest -qq -n 0 --collect-only) || { printf '%s\n' "$found" && return 1; }
}

# Archives of Java's classes, for the many JVMs of the tests with a broker. They cost 50 s of one
# core and halve the start of each; without them, where this Java cannot make any, all runs as well.
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
archives="$venv/class-archives-$("$java" -version 2>&1 | cksum | cut -d ' ' -f 1)"
archives_log="$venv/class-archives.log"
quietly="-Xlog:cds*=off"  # what does not fit a JVM's class path is to say nothing
making=""

make_archives() {
    JDK_JAVA_OPTIONS="$java_options" python tools/archive_classes.py "$archives" \
        </dev/null >"$archives_log" 2>&1 &
    making=$!
    trap 'kill "$making" 2>/dev/null || true' EXIT
}

# Whether Java takes an archive. Who starts Java splits its options at blanks.
is_usable() {
    case "$1" in *[[:space:]]*) return 1 ;; esac
    [ -s "$1" ] && "$java" "-XX:SharedArchiveFile=$1" "$quietly" -version >/dev/null 2>&1
}

use_archives() {
    wait "$making" || say "no class archives, Java starts slowly: see $archives_log"
    trap - EXIT
    if is_usable "$archives/kafka.jsa"; then
        KAFKA_HEAP_OPTS="${KAFKA_HEAP_OPTS--Xmx512m} -XX:SharedArchiveFile=$archives/kafka.jsa $quietly"
        export KAFKA_HEAP_OPTS
    fi
    if is_usable "$archives/spark.jsa"; then
        SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS-} -XX:SharedArchiveFile=$archives/spark.jsa $quietly"
        export SPARK_SUBMIT_OPTS
        # For masters, workers and executors. Kafka's own comes behind it; others leave it aside.
        java_options="$java_options -XX:SharedArchiveFile=$archives/spark.jsa $quietly"
    fi
}

# Three keep two cores busy, and take 10 GB at their highest. A container may have less than its
# machine has free.
broker_processes() {
    gigabytes=$(
        {
            awk '/^MemAvailable:/ { print $2 * 1024 }' /proc/meminfo
            cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes
        } 2>/dev/null |
            awk '$1 + 0 > 0 && $1 + 0 < 2 ^ 60 && (!least || $1 + 0 < least) { least = $1 + 0 }
                 END { print int(least / 1073741824) }'
    ) || true
    if [ "${gigabytes:-0}" -ge 12 ]; then echo 3; else echo 2; fi
}

step "ruff check" ruff check .
step "ruff format" ruff format --check .
step "mypy" mypy
step "import-linter" lint-imports
step "cython-lint" cython-lint pyspark_kafkaproto
step "generated messages" python tools/generate_messages.py --check
step "generated options" python tools/generate_options.py --check
step "plain pytest" collect

if [ -z "$only_checks" ]; then
    needs_broker="broker or spark or fault or differential"
    # An expression that is always true where the long schedules are wanted too.
    length=${long:+"(long or not long)"}
    length=${length:-"not long"}
    step "Apache Kafka" kafkaproto devbroker fetch
    step "Apache Kafka 3.9" env -u KAFKA_HOME kafkaproto devbroker fetch --kafka-version 3.9.1
    step "Apache Kafka 4.0" env -u KAFKA_HOME kafkaproto devbroker fetch --kafka-version 4.0.1
    # pytest's exit code 5, nothing collected, is an error like any other: a mark that no test
    # carries is a mistake here.
    # -n 3: two processes leave a third of two cores idle, as many of these tests wait. Deadlines
    # leave room for neighbours: with -n 8 all pass. Plain pytest draws fewer inputs.
    step "tests without a broker" \
        python -m pytest -q -n 3 -o "cache_dir=$cache" \
        --hypothesis-profile=full -m "$length and not ($needs_broker)"
    # Most of the Java programs end before what is optimised in them would pay.
    java_options=${JDK_JAVA_OPTIONS--XX:TieredStopAtLevel=1}
    make_archives  # fuzzing leaves it a core
    step "fuzzing" python tests/fuzz/run.py ${long:+--long}
    step "kernel under sanitizers" python tests/fuzz/sanitized.py
    # Each process has brokers and a Spark of its own, and whole files, so that those are shared.
    use_archives
    step "tests with a broker" env "JDK_JAVA_OPTIONS=$java_options" \
        python -m pytest -q -n "$(broker_processes)" -o "cache_dir=$cache" \
        --dist loadfile --no-loadscope-reorder \
        --hypothesis-profile=full -m "$length and ($needs_broker)"
fi

if [ -n "$failed" ]; then
    printf 'FAILED:%s\n' "$failed" >&2
    exit 1
fi
say "all passed"
