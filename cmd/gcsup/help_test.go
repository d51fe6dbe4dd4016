package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
)

// commands returns the tree of commands, complete as for a help.
func commands() *cobra.Command {
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	checkCompletionArgs(root)
	return root
}

// documentedGroups returns the flags in the tables of docs/cli.md, by the heading above the table.
func documentedGroups(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`^##+ (.*)\n`)
	name := regexp.MustCompile("`--([a-z0-9-]+)")
	groups, current := map[string][]string{}, ""
	for line := range strings.Lines(string(page)) {
		if m := heading.FindStringSubmatch(line); m != nil {
			current = m[1]
		}
		if cell, _, ok := strings.Cut(line, " | "); ok && strings.HasPrefix(cell, "| `-") {
			for _, m := range name.FindAllStringSubmatch(cell, -1) {
				groups[current] = append(groups[current], m[1])
			}
		}
	}
	return groups
}

// TestDocumentedGroups checks that docs/cli.md has the groups of the help, with the same flags in the
// same order.
func TestDocumentedGroups(t *testing.T) {
	documented := documentedGroups(t)
	root := commands()
	for _, g := range cmdline.Groups {
		if !slices.Equal(documented[g.Title], g.Flags) {
			t.Errorf("docs/cli.md has under %s the flags\n%q, the help\n%q", g.Title, documented[g.Title], g.Flags)
		}
		for _, flag := range g.Flags {
			if !anyHas(root, flag) {
				t.Errorf("%s has --%s, which no command has", g.Title, flag)
			}
		}
	}
}

// TestFlagsHaveGroups checks that the commands with many flags have groups for all of them.
func TestFlagsHaveGroups(t *testing.T) {
	own := map[string][]string{"cp": {"config", "help"}, "resume": {"all", "source", "remove-source", "encryption-key-file", "config", "help"}, "verify": {"extra", "jobs", "state-dir", "config", "help"}, "sync": {"delete", "delete-excluded", "max-delete", "config", "help"}}
	for _, cmd := range leaves(commands()) {
		want, many := own[cmd.Name()]
		if !many {
			continue
		}
		cmd.InitDefaultHelpFlag()
		var have []string
		for _, s := range cmdline.Sections(cmd, cmdline.Groups) {
			if s.Title == "Flags" {
				for _, f := range s.Flags {
					have = append(have, f.Name)
				}
			}
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s has the flags %q without a group, want %q: add the others to cmdline.Groups and docs/cli.md", cmd.Name(), have, want)
		}
	}
}

// TestFlagLabels checks that the help names the value of each flag in capitals, or lists its values.
func TestFlagLabels(t *testing.T) {
	label := regexp.MustCompile(`^--[a-z0-9-]+(( |\[=)([A-Z0-9_/=@,.:\[\]]+|gs://BUCKET/PREFIX|[a-z0-9]+(\|[a-z0-9]+)+)\]?)?$`)
	for _, cmd := range leaves(commands()) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if got := cmdline.Label(f); !f.Hidden && !label.MatchString(got) {
				t.Errorf("%s: %s", cmd.CommandPath(), got)
			}
		})
	}
	for flag, want := range map[string]string{"emulator": "--emulator[=DIR]", "skip-identical": "--skip-identical[=crc32c|mtime]", "dry-run": "--dry-run", "jobs": "--jobs N"} {
		cp, _, _ := commands().Find([]string{"cp"})
		if got := cmdline.Label(cp.Flags().Lookup(flag)); got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

// TestVerifyHelp checks that the help of verify does not describe an upload.
func TestVerifyHelp(t *testing.T) {
	cmd, _, err := commands().Find([]string{"verify"})
	if err != nil {
		t.Fatal(err)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if regexp.MustCompile(`(?i)upload|saved`).MatchString(f.Usage) {
			t.Errorf("--%s: %s", f.Name, f.Usage)
		}
	})
}

// TestDocumentedTopics checks the tables of README.md and docs/cli.md against the topics of the help.
func TestDocumentedTopics(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, codes, _ := strings.Cut(string(readme), "\n## Exit codes\n")
	codes, _, _ = strings.Cut(codes, "\n## ")
	var have, want []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+ \| .*) \|$`).FindAllStringSubmatch(codes, -1) {
		have = append(have, m[1])
	}
	for _, m := range exit.Meanings {
		want = append(want, strconv.Itoa(m.Code)+" | "+m.Text)
	}
	if !slices.Equal(have, want) {
		t.Errorf("README.md has the exit codes\n%q, the program\n%q", have, want)
	}
	have, want = nil, nil
	for _, m := range regexp.MustCompile("(?m)^\\| (`[A-Z].*?`) \\|").FindAllStringSubmatch(sections(t)["Environment"], -1) {
		have = append(have, strings.ReplaceAll(m[1], "`", ""))
	}
	for _, v := range variables {
		want = append(want, v.Term)
	}
	if !slices.Equal(have, want) {
		t.Errorf("docs/cli.md has the variables\n%q, the program\n%q", have, want)
	}
}

func TestHelpTopics(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"help exit-codes", "\n  75   temporary: run again to resume (in_use, interrupted, ", exit.OK},
		{"help environment", "\n  NO_COLOR  ", exit.OK},
		{"help files", "\n  ~/.local/state/gcsup/sessions\n", exit.OK},
		{"help enviroment", `unknown command or topic "enviroment", did you mean `, exit.Usage},
		{"help cp environment", "", exit.Usage},
		{"environment", `unknown command "environment"`, exit.Usage},
	} {
		var text strings.Builder
		code := execute(t.Context(), strings.Fields(c.args), stdio{strings.NewReader(""), &text, &text})
		if code != c.code || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: exit code %d\n%s", c.args, code, &text)
		}
	}
}
