# Functions for the test suites of other Go modules. They are run unmodified, from the source that the
# module proxy has.
. internal/compat/common.sh
: >"$work/suite.json"

# build_tests MODULE VERSION PACKAGE: builds the tests of a package of the module. -trimpath, because
# otherwise the path of this directory is part of the key of the build cache.
build_tests() {
	source=$(go mod download -json "$1@$2" | sed -n 's/^	"Dir": "\(.*\)",$/\1/p')
	[ -n "$source" ] || fail "the source of $1 $2 cannot be downloaded"
	cp -r "$source" "$work/module"
	chmod -R u+w "$work/module"
	package=$3
	(cd "$work/module" && GOWORK=off GOFLAGS=-mod=mod go test -c -trimpath -o ../module.test "./$package") >"$work/build.log" 2>&1 ||
		fail "the tests cannot be built: $(tail "$work/build.log")"
}

# run_tests FLAG...: runs the tests, and appends their results to suite.json.
run_tests() {
	(cd "$work/module/$package" && limited go tool test2json "$work/module.test" -test.v=test2json -test.timeout 4m "$@") >>"$work/suite.json" 2>"$work/suite.log" || true
}

# compare NAME TITLE VERSION: compares the failures with the list NAME.txt.
compare() {
	"$compat" suites -list "internal/compat/$1.txt" ${COMPAT_RECORD:+-record "$1" -version "$3"} "$work/suite.json" >"$work/differences" 2>&1 ||
		fail "$(cat "$work/differences" "$work/suite.log")"
	ok "$2 $3: $(tail -1 "$work/differences")"
}
