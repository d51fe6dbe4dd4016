package suites

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		format, text string
		want         map[string]testResult
	}{
		{"go", `{"Action":"start","Package":"p"}
{"Action":"run","Test":"A"}
{"Action":"run","Test":"A/1"}
{"Action":"output","Test":"A/1","Output":"--- PASS: A/1\n"}
{"Action":"pass","Test":"A/1"}
{"Action":"run","Test":"A/2"}
{"Action":"skip","Test":"A/2"}
{"Action":"fail","Test":"A"}
{"Action":"run","Test":"hangs"}
{"Action":"fail","Package":"p"}
`, map[string]testResult{"A/1": passed, "A/2": skipped, "hangs": failed}},
		{"junit", `<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="c" name="one"/><testcase classname="c" name="two"><failure message="m">x</failure></testcase>
<testcase classname="c" name="three"><error message="m"/></testcase><testcase classname="c" name="four"><skipped/></testcase>
<testcase classname="c" name="five"/><testcase classname="c" name="five"><error/></testcase>
</testsuite></testsuites>`, map[string]testResult{"c.one": passed, "c.two": failed, "c.three": failed, "c.four": skipped, "c.five": failed}},
		{"mocha", `{"stats":{},"tests":[],"passes":[{"fullTitle":"a 1"},{"fullTitle":"a  2"}],"failures":[{"fullTitle":"a 2"}],"pending":[{"fullTitle":"b"}]}`,
			map[string]testResult{"a 1": passed, "a 2": failed, "b": skipped}},
	} {
		file := filepath.Join(t.TempDir(), "results")
		require.NoError(t, os.WriteFile(file, []byte(test.text), 0o600))
		got, err := readResults(test.format, file)
		if err != nil || !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, %v, want %v", test.format, got, err, test.want)
		}
	}
}

func TestCompare(t *testing.T) {
	expected, err := parseExpected("# The server is right.\nA/[x]-*\nB\n\n# It is missing.\nC\n")
	require.NoError(t, err)
	for _, test := range []struct {
		results map[string]testResult
		want    []string
	}{
		{map[string]testResult{"A/[x]-1": failed, "A/[x]-2": failed, "B": failed, "C": failed, "D": passed, "E": skipped}, nil},
		{map[string]testResult{"A/[x]-1": failed, "A/[x]-2": passed, "B": skipped, "C": failed, "D": failed},
			[]string{"no longer fails:  A/[x]-2", "no longer fails:  B", "fails:            D"}},
		{map[string]testResult{"A/x-1": failed, "B": failed, "BC": passed},
			[]string{"fails:            A/x-1", "matches no test:  A/[x]-*", "matches no test:  C"}},
	} {
		if got := compare(test.results, expected); !slices.Equal(got, test.want) {
			t.Errorf("%v:\n%s\nwant\n%s", test.results, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
	if _, err := parseExpected("# Reason.\nA\n\nB\n"); err == nil {
		t.Error("a failure without a reason is accepted")
	}
}

// TestTableIsCurrent checks that the table in the page is that of the recorded results, that the
// recorded failures are in a list, and that each client of the table has a script.
func TestTableIsCurrent(t *testing.T) {
	rows, err := readRows("../results.json")
	require.NoError(t, err)
	page, err := os.ReadFile("../../../docs/emulator/emulator.md")
	require.NoError(t, err)
	current, err := replaceTable(page, table(rows))
	require.NoError(t, err)
	if string(current) != string(page) {
		t.Error("the table in docs/emulator/emulator.md is old: run make compat-table")
	}
	for _, c := range clients {
		if _, err := os.Stat("../" + c.name + ".sh"); err != nil {
			t.Error(err)
		}
		r := rows[c.name]
		if _, recorded := rows[c.name]; recorded && !regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(r.Date) {
			t.Errorf("%s: date %q", c.name, r.Date)
		}
		if c.shows != "" {
			continue
		}
		text, err := os.ReadFile("../" + c.name + ".txt")
		require.NoError(t, err)
		list, err := parseExpected(string(text))
		if err != nil {
			t.Errorf("%s.txt: %v", c.name, err)
		}
		if r.Failed > 0 && len(list) == 0 {
			t.Errorf("%s has %d recorded failures, and none in its list", c.name, r.Failed)
		}
	}
	for name := range rows {
		if !slices.ContainsFunc(clients, func(c struct{ name, what, shows string }) bool { return c.name == name }) {
			t.Errorf("the table has no row for %s", name)
		}
	}
}
