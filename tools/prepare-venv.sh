# Sourced by spark-submit.sh and tests/run.sh, after `root` (the checkout) was set:
#
#   require_tools            ends the script with a line per thing that is missing
#   prepare_venv EXTRA …     makes $root/.venv, with the package and these extras installed
#
# An environment that is ready is found by one check sum, in a tenth of a second. One whose install
# was cut off is made anew: pip cannot tell a half written package from a whole one.

say() { printf '%s\n' "$*" >&2; }

# The first Python that is new enough: $PYTHON, python3, then the newest by name.
find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Java's main version: 17 of `openjdk version "17.0.15"`, 8 of `java version "1.8.0_392"`.
java_version() {
    java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
    "$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

require_tools() {
    missing=0
    # Java would say nothing of its version.
    if ! pwd -P >/dev/null 2>&1; then
        say "the working directory was deleted: change to one that is there (cd)"
        exit 1
    fi
    if ! python=$(find_python); then
        found=$(python3 --version 2>/dev/null || echo "no python3 on PATH")
        say "Python 3.11 or later is needed ($found): install it" \
            "(Debian: apt-get install python3 python3-venv; macOS: brew install python@3.12)"
        missing=1
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        say "Python's venv module is needed ($python has none): install it" \
            "(Debian: apt-get install python3-venv; macOS: brew install python@3.12)"
        missing=1
    fi
    java_found=$(java_version)
    if [ -n "${JAVA_HOME:-}" ] && [ ! -x "$JAVA_HOME/bin/java" ]; then
        say "JAVA_HOME is $JAVA_HOME, where there is no bin/java: correct it, or unset it to use" \
            "the java on PATH"
        missing=1
    elif [ "${java_found:-0}" -lt 17 ]; then
        say "Java 17 or later is needed (${java_found:+found Java }${java_found:-no java on PATH}):" \
            "install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"
        missing=1
    fi
    [ "$missing" -eq 0 ] || exit 1
}

# What decides whether the installed package is still the checkout's: every file that is installed,
# the Python it is for, and whether there was a compiler for the kernel.
source_sum() {
    (
        cd "$root"
        find setup.cfg setup.py pyproject.toml pyspark_kafkaproto -type f \
            ! -name '*.pyc' ! -name '*.so' ! -name '*.c' -exec cksum {} + | LC_ALL=C sort
        "$python" -V
        command -v "${CC:-cc}" gcc || echo "no compiler"
    ) | cksum
}

# Whether every one of the wanted extras ($1) is among the installed ones ($2).
has_all() {
    for extra in $1; do
        case " $2 " in *" $extra "*) ;; *) return 1 ;; esac
    done
}

prepare_venv() {
    venv="$root/.venv"
    marker="$venv/kafkaproto-installed"
    unfinished="$venv/kafkaproto-installing"
    wanted="$*"
    sum=$(source_sum)
    if ! is_prepared; then
        lock_venv
        # Whoever held the lock before may have made just this.
        is_prepared || install_venv
        exec 9<&-
    fi
    place_kernel
}

# Whether the environment is the one that is wanted.
is_prepared() {
    installed=""
    [ -x "$venv/bin/python" ] && [ -f "$marker" ] && [ ! -e "$unfinished" ] || return 1
    installed=$(sed -n 2p "$marker")
    [ "$(sed -n 1p "$marker")" = "$sum" ] && has_all "$wanted" "$installed"
}

# One run at a time makes it. The lock ends with the last process that has descriptor 9: a killed
# run's pip is waited for too. A file system without locks does without.
lock_venv() {
    exec 9<"$root/setup.cfg"
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null && return
    say "waiting for another run that prepares $venv"
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' 2>/dev/null || true
}

install_venv() {
    make_venv
    touch "$unfinished"
    # What an earlier call installed stays: the tests need more than the job does.
    extras=$(printf '%s\n' $wanted $installed | LC_ALL=C sort -u | tr '\n' ' ')
    install_package "$(echo $extras | tr ' ' ',')"
    place_kernel
    warn_without_kernel
    printf '%s\n%s\n' "$sum" "$extras" >"$marker"
    rm "$unfinished"
}

make_venv() {
    if [ ! -e "$unfinished" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    say "making $venv with $("$python" -V)"
    if [ -e "$venv" ]; then
        # Broken or cut off. Only ever what venv itself made is removed.
        if [ ! -f "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
            say "$venv is not a Python environment: move it away"
            exit 1
        fi
        rm -rf "$venv"
    fi
    # What Python says names the folder and what is wrong with it.
    "$python" -m venv "$venv" || fail_to_make "$?"
}

fail_to_make() {
    [ "$1" -gt 128 ] || say "$venv could not be made, see above: the checkout has to be on a disk" \
        "with room where you may write; clone it to such a place"
    exit "$1"
}

install_package() {
    say "installing pyspark-kafkaproto[$1] into $venv (a minute or two the first time)"
    remove_build
    # pip and compileall deal with Ctrl-C and end with 1, as if they had failed: bash goes on then.
    interrupted=""
    trap 'interrupted=yes' INT
    pip_code=0
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile \
        "$root[$1]" >&2 || pip_code=$?
    [ -z "$interrupted" ] || exit 130
    [ "$pip_code" -eq 0 ] || fail_to_install "$pip_code"
    remove_build
    # Only speed, all of this. pip would compile on one core; a few packages bring files that are
    # no Python, of which it says nothing either.
    "$venv/bin/python" -m compileall -q -j 0 "$venv"/lib/python*/site-packages >/dev/null 2>&1 || true
    trap - INT
    [ -z "$interrupted" ] || exit 130
    "$venv/bin/python" "$root/tools/compile_spark_zip.py" 2>/dev/null ||
        say "Spark's pyspark.zip has no bytecode: each of its Python processes starts a second later"
}

# What pip says last is seldom what was wrong.
fail_to_install() {
    [ "$1" -gt 128 ] || say "pip could not install the package and what it needs, see above: is a" \
        "package index reached? PIP_INDEX_URL names another one, PIP_PROXY a proxy"
    exit "$1"
}

# What setuptools leaves in the checkout: it would put modules into the next wheel that were deleted
# since, and the checks would look at it.
remove_build() {
    rm -rf "$root/build/lib" "$root"/build/lib.* "$root"/build/temp.* "$root"/build/bdist.*
}

# The Python processes that Spark starts look into the working directory first. In the checkout they
# find these sources there, so what was compiled from them has to be beside them.
place_kernel() {
    for built in "$venv"/lib/python*/site-packages/pyspark_kafkaproto/*/_*.so; do
        [ ! -e "$built" ] || place_native "$built"
    done
    for beside in "$root"/pyspark_kafkaproto/*/_*.so; do
        remove_unless_built "$beside"
    done
}

place_native() {
    room=${1%/*}
    beside="$root/pyspark_kafkaproto/${room##*/}/${1##*/}"
    cmp -s "$1" "$beside" && return
    # Never written in place: a running process may have it loaded.
    cp "$1" "$beside.new"
    mv "$beside.new" "$beside"
}

# What is of another Python stays, as long as there is one of the same name for this one.
remove_unless_built() {
    name=${1##*/}
    room=${1%/*}
    stem=pyspark_kafkaproto/${room##*/}/${name%%.*}
    for built in "$venv"/lib/python*/site-packages/"$stem".*so; do
        [ ! -e "$built" ] || return 0
    done
    rm -f "$1"
}

warn_without_kernel() {
    ls "$root"/pyspark_kafkaproto/records/_kernel*.so >/dev/null 2>&1 ||
        say "the kernel could not be compiled, so the pure-Python codec is used: 150 times slower;" \
            "install a C compiler (Debian: apt-get install gcc python3-dev; macOS: xcode-select --install)"
}
