package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/shell"
)

// commandLine is the command line of a run, for commands that continue it.
type commandLine struct {
	args  []string // without the name of the program
	given *pflag.FlagSet
}

// argsKey is the key of the arguments in the context of a command.
type argsKey struct{}

// withArgs returns the context of a command that was called with args.
func withArgs(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argsKey{}, args)
}

// newCommandLine returns the command line of a command with that context.
func newCommandLine(ctx context.Context, given *pflag.FlagSet) commandLine {
	args, _ := ctx.Value(argsKey{}).([]string)
	return commandLine{args, given}
}

// text returns the command line without secrets.
func (c commandLine) text() string {
	words, args := []string{filepath.Base(process.Called())}, c.args
	if _, command, ok := splitCommand(c.given.Args(), c.given.ArgsLenAtDash()); ok {
		args = args[:len(args)-len(command)+1] // they may be secret
	}
	for _, arg := range hideHeaders(args) {
		words = append(words, shell.Quote(password.ReplaceAllString(arg, "://…@")))
	}
	return strings.Join(words, " ")
}

// password matches the user and the password in a URL. Such an endpoint is refused,
// but the report about it contains the command line.
var password = regexp.MustCompile(`://[^/@\s]*@`)

// hideHeaders removes the values of --additional-headers, which may be secret.
func hideHeaders(args []string) []string {
	const flag = "--additional-headers"
	args = slices.Clone(args)
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, flag+"="):
			args[i] = flag + "=…"
		case arg == flag && i+1 < len(args):
			args[i+1] = "…"
		}
	}
	return args
}

// resume returns the command that resumes an upload.
func (c commandLine) resume(id string) string {
	return resumeCommand(process.Words(), c.given, id) + withTheSame(c.secrets())
}

// again returns the command that uploads the rest of a batch. It is the command of this
// run, which then skips finished files. A user can paste it in the same directory. Like
// the result of resumeCommand, it contains two environment variables, but no headers.
func (c commandLine) again() string {
	words := continueArgs(c.args)
	words = slices.Insert(words, min(1, len(words)), wordsFromEnv(c.given)...) // they may be set for this run only
	if c.given.Lookup("manifest") != nil && !slices.ContainsFunc([]string{"no-clobber", "skip-identical", "manifest"}, c.given.Changed) {
		words = slices.Insert(words, min(1, len(words)), "--skip-identical") // after cp
	}
	if dir := os.Getenv(process.StateDirEnv); dir != "" && !slices.ContainsFunc([]string{"state-dir", "state", "no-state"}, c.given.Changed) {
		words = slices.Insert(words, min(1, len(words)), "--state-dir="+process.Absolute(dir))
	}
	for i, word := range words {
		words[i] = shell.Quote(word)
	}
	text := process.Words() + " " + strings.Join(words, " ")
	if host := emulatorHost(c.given); host != "" {
		text = "STORAGE_EMULATOR_HOST=" + shell.Quote(host) + " " + text
	}
	same := c.secrets()
	if c.readsLists() {
		same = append(same, "standard input")
	}
	return text + withTheSame(same)
}

// readsLists reports whether the run reads paths or patterns from standard input.
func (c commandLine) readsLists() bool {
	short, _ := c.given.GetBool("read-paths-from-stdin")
	paths, _ := c.given.GetString("files-from")
	include, _ := c.given.GetStringArray("include-from")
	exclude, _ := c.given.GetStringArray("exclude-from")
	return short || slices.Contains(slices.Concat([]string{paths}, include, exclude), stdinName)
}

// secrets returns what a command that continues the run needs, and a printed one does not contain.
func (c commandLine) secrets() (names []string) {
	if c.given.Changed("additional-headers") {
		names = append(names, "--additional-headers")
	}
	if keyFromEnv(c.given) {
		names = append(names, encryptionKeyEnv)
	}
	return names
}

// withTheSame returns a remark on a command, or "" if there are no names.
func withTheSame(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (with the same " + strings.Join(names, " and ") + ")"
}

// continueArgs returns the arguments of a command without the headers, which may
// be secret, and without --restart, which would discard what was sent.
func continueArgs(args []string) (kept []string) {
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		switch name {
		case "--":
			return append(kept, args[i:]...)
		case "--additional-headers":
			if !hasValue {
				i++
			}
		case "--restart":
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}
