package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// symptomsFile is docs/how-to/troubleshooting.md. Scripts change the directory of their commands, not that of this
// process.
var symptomsFile = filepath.Join("..", "..", "docs", "how-to", "troubleshooting.md")

// symptoms returns the messages in docs/how-to/troubleshooting.md by heading.
func symptoms(ts *testscript.TestScript) map[string][]string {
	page, err := os.ReadFile(symptomsFile)
	ts.Check(err)
	all := map[string][]string{}
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		_, block, _ := strings.Cut(body, "\n```\n")
		block, _, found := strings.Cut(block, "\n```\n")
		if !found {
			ts.Fatalf("docs/how-to/troubleshooting.md has no message under %s", heading)
		}
		all[heading] = strings.Split(block, "\n")
	}
	return all
}

// scriptDocumented checks that the last command printed exactly the messages under a heading of
// docs/how-to/troubleshooting.md, in which … stands for any text. They may be a part of standard output.
func scriptDocumented(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) <= 1, "documented [HEADING]")
	all := symptoms(ts)
	used := ts.Value(documentedKey{}).(map[string]bool)
	if len(args) == 0 {
		for heading := range all {
			if !used[heading] {
				ts.Fatalf("docs/how-to/troubleshooting.md has %q, which no script produces", heading)
			}
		}
		return
	}
	want := all[args[0]]
	if want == nil {
		ts.Fatalf("docs/how-to/troubleshooting.md has no heading %q", args[0])
	}
	used[args[0]] = true
	messages := lines(ts.ReadFile("stderr"))
	printed := slices.Concat(lines(ts.ReadFile("stdout")), messages)
	matches := func(line, text string) bool {
		return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$").MatchString(text)
	}
	for _, line := range want {
		if !slices.ContainsFunc(printed, func(text string) bool { return matches(line, text) }) {
			ts.Fatalf("docs/how-to/troubleshooting.md has under %q\n%s\nprinted was\n%s", args[0], line, strings.Join(printed, "\n"))
		}
	}
	for _, text := range messages {
		if !slices.ContainsFunc(want, func(line string) bool { return matches(line, text) }) {
			ts.Fatalf("docs/how-to/troubleshooting.md does not have under %q\n%s", args[0], text)
		}
	}
}

// documentedKey is the key of the headings that a script has used.
type documentedKey struct{}

func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
}
