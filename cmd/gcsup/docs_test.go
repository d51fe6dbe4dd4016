package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// docs/cli.md is the contract for scripts. These tests check it against the program.

// sections returns the parts of docs/cli.md by heading.
func sections(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		parts[heading] = body
	}
	return parts
}

func TestDocumentedFlags(t *testing.T) {
	parts := sections(t)
	flag := regexp.MustCompile("`(?:-[a-z]`, `)?--([a-z0-9-]+)")
	documented := func(text string) (names []string) {
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		for _, m := range regexp.MustCompile(`\(#([a-z]+)\)`).FindAllStringSubmatch(text, -1) {
			for heading, body := range parts {
				if strings.ToLower(heading) != m[1] || heading == "Environment" {
					continue
				}
				for _, line := range strings.Split(body, "\n") {
					if name := flag.FindStringSubmatch(line); name != nil && strings.HasPrefix(line, "| `-") {
						names = append(names, name[1])
					}
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	for _, cmd := range leaves(root) {
		path := cmd.CommandPath()
		var heading string
		for h := range parts {
			if h == path || strings.HasPrefix(h, path+" ") {
				heading = h
			}
		}
		if heading == "" {
			t.Errorf("%s has no section in docs/cli.md", path)
			continue
		}
		var have []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != configFlag { // which has a section of its own
				have = append(have, f.Name)
			}
		})
		slices.Sort(have)
		var want []string
		for _, name := range documented(parts[heading]) {
			// A section may mention a flag of another command.
			if cmd.LocalFlags().Lookup(name) != nil || !anyHas(root, name) {
				want = append(want, name)
			}
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s has the flags\n%v, docs/cli.md has\n%v", path, have, want)
		}
	}
}

func leaves(cmd *cobra.Command) []*cobra.Command {
	if len(cmd.Commands()) == 0 {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		all = append(all, leaves(c)...)
	}
	return all
}

func anyHas(root *cobra.Command, flag string) bool {
	return slices.ContainsFunc(leaves(root), func(c *cobra.Command) bool { return c.LocalFlags().Lookup(flag) != nil })
}

func TestDocumentedExitCodes(t *testing.T) {
	var have, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d+) \\| (?:`([a-z_]+)`)? ?\\|").FindAllStringSubmatch(sections(t)["Exit codes"], -1) {
		have = append(have, m[1]+" "+m[2])
	}
	want = append(want, fmt.Sprint(exit.OK, " "), fmt.Sprint(exit.Signal, " "))
	for kind, code := range exit.Codes {
		want = append(want, strconv.Itoa(code)+" "+kind)
	}
	slices.Sort(have)
	slices.Sort(want)
	want = slices.Compact(want)
	if !slices.Equal(have, want) {
		t.Errorf("docs/cli.md has the exit codes\n%q, the program\n%q", have, want)
	}
}

func TestDocumentedJSON(t *testing.T) {
	part := sections(t)["JSON Lines"]
	results, events, ok := strings.Cut(part, "Events come before the result")
	if !ok {
		t.Fatal("docs/cli.md has no section on events")
	}
	first := regexp.MustCompile("(?m)^\\| ((?:`[a-z0-9_]+`(?:, )?)+) \\|")
	name := regexp.MustCompile("`([a-z0-9_]+)`")
	column := func(text string) (names []string) {
		for _, row := range first.FindAllStringSubmatch(text, -1) {
			for _, m := range name.FindAllStringSubmatch(row[1], -1) {
				names = append(names, m[1])
			}
		}
		slices.Sort(names)
		return names
	}
	fields := append(slices.Clone(resultFields), "entry") // which is optional
	if have, want := column(results), slices.Sorted(slices.Values(fields)); !slices.Equal(have, want) {
		t.Errorf("docs/cli.md has the fields\n%v of a result, the program\n%v", have, want)
	}
	events, summary, ok := strings.Cut(events, "The last line is a summary")
	if !ok {
		t.Fatal("docs/cli.md has no section on the summary")
	}
	var totals []string
	for f := range reflect.TypeFor[summaryLine]().Fields() {
		totals = append(totals, f.Tag.Get("json"))
	}
	slices.Sort(totals)
	if have := column(summary); !slices.Equal(have, totals) {
		t.Errorf("docs/cli.md has the fields\n%v of a summary, the program\n%v", have, totals)
	}
	kinds := []string{upload.Held.String(), upload.PartDone.String(), upload.Undivided.String(), upload.Divided.String(), upload.InputWaits.String(), upload.InputContinues.String()}
	for k := range upload.Warning + 1 {
		kinds = append(kinds, k.String())
	}
	slices.Sort(kinds)
	if have := column(events); !slices.Equal(have, kinds) {
		t.Errorf("docs/cli.md has the events\n%v, the program\n%v", have, kinds)
	}
	for f := range reflect.TypeFor[eventLine]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(events, "`"+key+"`") {
			t.Errorf("docs/cli.md does not name the field %s of events", key)
		}
	}
}

// TestDocumentedTests checks that the tests that docs/reliability.md names exist.
func TestDocumentedTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(page), -1) {
		if !strings.Contains(tests.String(), "\nfunc "+name) {
			t.Errorf("docs/reliability.md names %s, but there is no such test", name)
		}
	}
}

// TestDocumentedPatterns checks that each pattern in docs/cli.md selects the files of
// its row.
func TestDocumentedPatterns(t *testing.T) {
	type row struct {
		pattern string
		yes, no []string // the files that it selects, and others
	}
	root := t.TempDir()
	word := regexp.MustCompile("`([^`]*)`")
	words := func(cell string) (names []string) {
		for _, m := range word.FindAllStringSubmatch(cell, -1) {
			if strings.ContainsAny(m[1], "*{") || strings.HasSuffix(m[1], "/") {
				continue // another pattern
			}
			names = append(names, m[1])
		}
		return names
	}
	var rows []row
	for line := range strings.Lines(sections(t)["Patterns"]) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		r := row{pattern: word.FindStringSubmatch(cells[0])[1], yes: words(cells[1]), no: words(cells[2])}
		rows = append(rows, r)
		for _, name := range slices.Concat(r.yes, r.no) {
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(rows) < 15 {
		t.Errorf("found only %d rows", len(rows))
	}
	for _, r := range rows {
		for _, opts := range []tree.Options{{Include: []string{r.pattern}}, {Exclude: []string{r.pattern}}} {
			files, err := tree.New([]tree.Source{{Path: root}}, upload.Spec{Bucket: "b"}, &opts)
			if err != nil {
				t.Error(err)
				continue
			}
			uploaded := map[string]bool{}
			for job := range files.Walk(t.Context()) {
				uploaded[job.Spec.Object] = true
			}
			for _, name := range r.yes {
				if uploaded[name] != (opts.Include != nil) {
					t.Errorf("%+v: %s is uploaded: %v", opts, name, uploaded[name])
				}
			}
			for _, name := range r.no {
				if uploaded[name] != (opts.Exclude != nil) {
					t.Errorf("%+v: %s is uploaded: %v", opts, name, uploaded[name])
				}
			}
		}
	}
}
