package recorded

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

var (
	update = flag.Bool("update", false, "write the counts into docs/emulator/emulator.md")
	show   = flag.Bool("show", false, "print every difference, also those that are accepted")
)

// tally counts the exchanges of an archive.
type tally struct {
	archive
	exchanges, compared int
	leftOut             map[string]int
	status, body, all   int // the same status, also the same body, also the same headers
}

func TestRecordings(t *testing.T) {
	used := map[int]bool{} // rows of accepted
	var tallies []tally
	for _, a := range archives {
		list, err := a.conversations()
		if err != nil {
			t.Fatal(err)
		}
		sum, known := tally{archive: a, leftOut: map[string]int{}}, contentsOf(list)
		for _, c := range list {
			sum.play(t, c, known, used)
		}
		t.Logf("%s: %d exchanges, %d compared, the same: %d status, %d also body, %d also headers; left out: %v",
			a.Module, sum.exchanges, sum.compared, sum.status, sum.body, sum.all, sum.leftOut)
		if sum.status != sum.compared {
			t.Errorf("%d replies have another status", sum.compared-sum.status)
		}
		tallies = append(tallies, sum)
	}
	for i, r := range accepted {
		if !used[i] {
			t.Errorf("no difference needs the row %q, %q", r.at, r.why)
		}
	}
	checkPage(t, table(tallies))
}

// play sends the requests of a conversation to a new server.
func (sum *tally) play(t *testing.T, c conversation, bytes contents, used map[int]bool) {
	t.Helper()
	buckets, objects := c.seeds(bytes)
	// The idempotency tokens were removed from the recording: all are the same.
	srv := fakegcs.NewServer(t, &fakegcs.Options{Buckets: buckets, Objects: objects, NoIdempotencyTokens: true})
	defer srv.Close()
	client := srv.Client()
	client.Transport.(*http.Transport).DisableCompression = true
	known, pays := newValues(), map[string]bool{}
	for n, x := range c.Exchanges {
		sum.exchanges++
		x.Payer = payer(x, pays)
		if why := leftOut(x); why != "" {
			sum.leftOut[why]++
			continue
		}
		req, err := x.build(srv.URL, known)
		if err != nil {
			t.Fatalf("%s#%d: %v", c.Name, n, err)
		}
		got, err := send(client, req)
		if err != nil {
			t.Fatalf("%s#%d: %v", c.Name, n, err)
		}
		if notImplemented(got) {
			sum.leftOut["operation that fakegcs does not have"]++
			continue
		}
		sum.compared++
		found := compare(x.Reply, got, known)
		for _, d := range found {
			if *show {
				fmt.Printf("%s %s#%d %s: %d: %.250s\n", c.Year, c.Name, n, x, x.Reply.Status, d)
			}
			if i := slices.IndexFunc(accepted, func(r row) bool { return r.matches(c.Year, d) }); i >= 0 {
				used[i] = true
			} else {
				t.Errorf("%s#%d %s: %.400s", c.Name, n, x, d)
			}
		}
		sum.count(found)
	}
}

func (sum *tally) count(found []difference) {
	if slices.ContainsFunc(found, func(d difference) bool { return d.At == "status" }) {
		return
	}
	sum.status++
	if slices.ContainsFunc(found, func(d difference) bool { return !d.inHeader() }) {
		return
	}
	sum.body++
	if len(found) == 0 {
		sum.all++
	}
}

// table returns the counts as a table for docs/emulator/emulator.md.
func table(tallies []tally) string {
	var b strings.Builder
	b.WriteString("| recording | exchanges | compared | the same status | and the same body | and the same headers | left out (reason) |\n|---|---|---|---|---|---|---|\n")
	for _, sum := range tallies {
		var out []string
		for _, why := range slices.Sorted(maps.Keys(sum.leftOut)) {
			out = append(out, fmt.Sprintf("%d (%s)", sum.leftOut[why], why))
		}
		fmt.Fprintf(&b, "| %s %s, %s | %d | %d | %d | %d | %d | %s |\n",
			sum.Module, sum.Version, sum.Year, sum.exchanges, sum.compared, sum.status, sum.body, sum.all, strings.Join(out, ", "))
	}
	return b.String()
}

// checkPage compares docs/emulator/emulator.md with the table, or writes it.
func checkPage(t *testing.T, table string) {
	const page, begin, end = "../../../docs/emulator/emulator.md", "<!-- go test ./internal/compat/recorded -update writes this table -->\n", "<!-- end of the recordings -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(text, []byte(begin))
	was, after, ended := bytes.Cut(rest, []byte(end))
	switch {
	case !found || !ended:
		t.Fatalf("%s has no place for the table", page)
	case string(was) == table:
	case *update:
		text = slices.Concat(before, []byte(begin), []byte(table), []byte(end), after)
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the counts in %s are old; run go test -run TestRecordings -update in internal/compat/recorded\n%s", page, table)
	}
}

// TestReadme checks the counts that README.md names.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../../../docs/emulator/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	total, newest := 0, ""
	for _, m := range regexp.MustCompile(`(?m)^\| \S+ v\S+, (\d{4}) \| \d+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|`).FindAllSubmatch(page, -1) {
		n, _ := strconv.Atoi(string(m[2]))
		total += n
		if newest = string(m[2]); !bytes.Equal(m[2], m[3]) {
			t.Errorf("of %s exchanges of %s, only %s have the same status", m[2], m[1], m[3])
		}
		if string(m[1]) == "2026" && (!bytes.Equal(m[2], m[4]) || !bytes.Equal(m[2], m[5])) {
			t.Errorf("of %s exchanges of %s, only %s have the same body, and %s the same headers", m[2], m[1], m[4], m[5])
		}
	}
	for _, want := range []string{fmt.Sprintf("%d replies of the real service", total), "The " + newest + " recorded in 2026 also have the same headers and body"} {
		if !bytes.Contains(readme, []byte(want)) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}
