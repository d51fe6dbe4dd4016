package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// commandOf returns a new command by its words.
func commandOf(t *testing.T, words ...string) *cobra.Command {
	t.Helper()
	cmd, rest, err := commands().Find(words)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%q: %q is left, %v", words, rest, err)
	}
	return cmd
}

// gcsup runs a command in this process, without input, and returns its exit code, its output and its messages.
func gcsup(t *testing.T, args ...string) (code int, out, messages string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = execute(t.Context(), args, stdio{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

// TestGroups checks that a command has each flag of a group.
func TestGroups(t *testing.T) {
	root := commands()
	for _, g := range cmdline.Groups {
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
			t.Errorf("%s has the flags %q without a group, want %q: add the others to cmdline.Groups", cmd.Name(), have, want)
		}
	}
}

// TestHelpFitsScreen checks that the help of each command has at most 48 lines of 80 columns.
func TestHelpFitsScreen(t *testing.T) {
	root := commands()
	for _, cmd := range append(allBelow(root), root) {
		code, text, messages := gcsup(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		if code != exit.OK || messages != "" {
			t.Fatalf("%s: exit code %d: %s", cmd.CommandPath(), code, messages)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) > 48 {
			t.Errorf("%s: %d lines: mark fewer flags with cmdline.Common", cmd.CommandPath(), len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s: %d columns: %q", cmd.CommandPath(), n, line)
			}
		}
	}
}

// TestHelpFlags checks that the help lists all flags of a command and of all commands.
func TestHelpFlags(t *testing.T) {
	help := func(args ...string) string {
		code, text, messages := gcsup(t, append([]string{"help", "flags"}, args...)...)
		if code != exit.OK || messages != "" {
			t.Fatalf("%q: exit code %d: %s", args, code, messages)
		}
		return text
	}
	all := help()
	for _, cmd := range leaves(commands()) {
		if !cmd.IsAvailableCommand() {
			continue
		}
		own := help(strings.Fields(cmd.CommandPath())[1:]...)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			listed := regexp.MustCompile(`(?m)^  (-[A-Za-z0-9], |    )` + regexp.QuoteMeta(cmdline.Label(f)) + `( |$)`)
			if !f.Hidden && !listed.MatchString(own) {
				t.Errorf("help flags %s has no %s", commandName(cmd), cmdline.Label(f))
			}
			if !f.Hidden && f.Name != "help" && cmd.Parent().Name() != "completion" && !listed.MatchString(all) {
				t.Errorf("help flags has no %s, of %s", cmdline.Label(f), commandName(cmd))
			}
		})
	}
	if !strings.Contains(help("cp"), "\nRetry (failures and slow requests):\n") {
		t.Error("help flags cp has no group")
	}
}

// allBelow returns the commands below root.
func allBelow(root *cobra.Command) (all []*cobra.Command) {
	for _, cmd := range root.Commands() {
		all = append(append(all, cmd), allBelow(cmd)...)
	}
	return all
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
	for flag, want := range map[string]string{"emulator": "--emulator[=DIR]", "skip-identical": "--skip-identical[=crc32c|mtime|off]", "dry-run": "--dry-run", "jobs": "--jobs N"} {
		if got := cmdline.Label(commandOf(t, "cp").Flags().Lookup(flag)); got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

// TestVerifyHelp checks that the help of verify does not describe an upload.
func TestVerifyHelp(t *testing.T) {
	commandOf(t, "verify").LocalFlags().VisitAll(func(f *pflag.Flag) {
		if regexp.MustCompile(`(?i)upload|saved`).MatchString(f.Usage) {
			t.Errorf("--%s: %s", f.Name, f.Usage)
		}
	})
}

func TestHelpTopics(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"help exit-codes", "\n  75   temporary: run again to resume (in_use, interrupted, ", exit.OK},
		{"help environment", "\n  NO_COLOR  ", exit.OK},
		{"help errors", "\n  in_use                75: another process is working on this upload\n", exit.OK},
		{"help patterns", "\n  *.{jpg,png}       selects: a.jpg, a.png; does not select: a.JPEG\n", exit.OK},
		{"help files", "\n  ~/.local/state/gcsup/uploads\n", exit.OK},
		{"help topics", "\n  patterns     The patterns of --include and --exclude\n", exit.OK},
		{"help flag", `unknown command or topic "flag", did you mean `, exit.Usage},
		{"help flags sycn", `unknown command "sycn", did you mean `, exit.Usage},
		{"help flags patterns", `unknown command "patterns"`, exit.Usage},
		{"help enviroment", `unknown command or topic "enviroment", did you mean `, exit.Usage},
		{"help cp environment", "", exit.Usage},
		{"environment", `unknown command "environment"`, exit.Usage},
	} {
		code, out, messages := gcsup(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+messages, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, out, messages)
		}
	}
}
