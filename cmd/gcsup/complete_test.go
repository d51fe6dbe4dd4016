package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/cli/exit"
)

// complete returns what the shell is offered for a command line.
func complete(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	code := execute(t.Context(), append([]string{"__complete"}, args...), stdio{strings.NewReader(""), &out, io.Discard})
	if code != exit.OK {
		t.Fatalf("__complete %q: exit code %d", args, code)
	}
	return out.String()
}

// TestCompleteEnumerations checks that the shell is offered the values of each
// flag that docs/cli.md lists as --flag a|b.
func TestCompleteEnumerations(t *testing.T) {
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	flag := regexp.MustCompile("`--([a-z0-9-]+)(?: |\\[=)([A-Za-z0-9_-]+(?:\\\\?\\|[A-Za-z0-9_-]+)+)\\]?`")
	checked := 0
	for _, body := range sections(t) {
		for _, m := range flag.FindAllStringSubmatch(body, -1) {
			want := strings.Split(strings.ReplaceAll(m[2], "\\", ""), "|")
			want = slices.DeleteFunc(want, func(value string) bool { return value == "N" }) // any number
			for _, cmd := range leaves(root) {
				if cmd.LocalFlags().Lookup(m[1]) == nil {
					continue
				}
				checked++
				out := complete(t, append(strings.Fields(cmd.CommandPath())[1:], "--"+m[1]+"=")...)
				if got := strings.Split(out, "\n"); strings.Join(got[:min(len(want), len(got))], " ") != strings.Join(want, " ") {
					t.Errorf("%s --%s: offered %q, want %q", cmd.CommandPath(), m[1], out, want)
				}
			}
		}
	}
	if checked < 4 {
		t.Errorf("found only %d flags with a list of values", checked)
	}
}

func TestCompleteFlags(t *testing.T) {
	const noFiles, dirs, files = ":4\n", ":16\n", ":0\n"
	for _, c := range []struct{ line, want string }{
		{"cp --limit-rate=", noFiles},
		{"cp --predefined-acl=p", "private\nprojectPrivate\npublicRead\n:4\n"},
		{"cp --retention-mode=", "Locked\nUnlocked\n:4\n"},
		{"cp --storage-class=N", "NEARLINE\n:4\n"},
		{"cp --state-dir=", dirs},
		{"cp --emulator=", dirs},
		{"cp --files-from=", files},
		{"cp ", files},
		{"verify ", files},
		{"doctor ", noFiles},
		{"sessions list ", noFiles},
		{"sessions prune ", noFiles},
		{"sessions import ", files},
		{"simulate --policy=none,fu", "none,full\n:6\n"},
		{"simulate --scenario=up", "uploads\tuploads of 30 parts, one per second, meet an outage after 15 s; each part served is progress\n:4\n"},
		{"completion ", "bash\tGenerate the autocompletion script for bash\nfish\tGenerate the autocompletion script for fish\npowershell\tGenerate the autocompletion script for powershell\nzsh\tGenerate the autocompletion script for zsh\n:4\n"},
	} {
		if got := complete(t, strings.Split(c.line, " ")...); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}
