package cmdline

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// FlagError replaces an error of pflag by one in the style of this program.
func FlagError(cmd *cobra.Command, err error) error {
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := value.GetFlag()
		return exit.Usagef("--%s %q: %s; see %s", f.Name, value.GetValue(), Wanted(f, value), FlagsOf(cmd))
	}
	if none, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f := none.GetFlag()
		return exit.Usagef("--%s has no value: %s; see %s", f.Name, Wanted(f, nil), FlagsOf(cmd))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return exit.Usagef("%w; see %s", err, FlagsOf(cmd))
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		// The flag may be valid; the command before it is unknown.
		return unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	name, flag, near := unknown.GetSpecifiedName(), "--"+unknown.GetSpecifiedName(), ""
	advice, other := peerAdvice(cmd, name), (*cobra.Command)(nil)
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		flag, near = "-"+name, longName(cmd, short)
	} else if advice == "" {
		near = Nearest(name, flagNames(cmd))
		other = withFlag(cmd, name)
	}
	switch {
	case near != "":
		return exit.Usagef("unknown flag %s, did you mean --%s? See %s", flag, near, FlagsOf(cmd))
	case advice != "":
		return exit.Usagef("unknown flag %s: %s; see %s", flag, advice, FlagsOf(cmd))
	case other != nil:
		return exit.Usagef("unknown flag %s here: flags come after the command, as in %s %s", flag, commandLine(other), flag)
	}
	return exit.Usagef("unknown flag %s; see %s", flag, FlagsOf(cmd))
}

// flagNames returns the names of the flags of a command.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// longName returns the name of a flag that was given with one dash, such as -recursive, or "". rest is
// what remains after the letters that are shorthands.
func longName(cmd *cobra.Command, rest string) (long string) {
	rest, _, _ = strings.Cut(rest, "=")
	if len(rest) < 2 {
		return ""
	}
	for _, name := range append(PeerFlags(cmd), flagNames(cmd)...) {
		letters, ok := strings.CutSuffix(name, rest)
		if ok && !strings.ContainsFunc(letters, func(r rune) bool { return cmd.Flags().ShorthandLookup(string(r)) == nil }) {
			long = name
		}
	}
	return long
}

// header matches a header such as Cache-Control:no-cache, and no URL.
var header = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*:($|[^/])`)

// CheckHeaders refuses -h with a header, as gsutil has it: here it would print the help, and upload nothing.
func CheckHeaders(root *cobra.Command, args []string) error {
	for i, arg := range args {
		if arg == "--" {
			return nil
		}
		if i > 0 && args[i-1] == "-h" && header.MatchString(arg) {
			return exit.Usagef("-h prints the help, and is no header: %s; see %s", peerAdvice(root, "h"), FlagsOf(root))
		}
	}
	return nil
}

// Wanted describes the values that a flag accepts. err is the error of its Set,
// which describes them for flags of this program's types.
func Wanted(f *pflag.Flag, err error) string {
	switch f.Value.Type() {
	case "bool":
		return "want true or false"
	case "duration":
		return "want a duration with its unit, such as 90s or 12h"
	case "int", "int64":
		return "want a whole number"
	case "uint", "uint64":
		return "want a whole number that is not negative"
	case "float64":
		return "want a number"
	case "stringSlice":
		return "want names separated by commas"
	}
	if own := errors.Unwrap(err); own != nil {
		return own.Error()
	}
	if f.Value.Type() == "SIZE" {
		return ErrSize.Error()
	}
	name, _ := pflag.UnquoteUsage(f)
	return "want " + name
}

// unknownCommand is the error of a command that cmd does not have.
func unknownCommand(cmd *cobra.Command, name string) error {
	none := fmt.Sprintf("unknown command %q", strings.TrimSpace(commandName(cmd)+" "+name))
	near, other := Nearest(name, commandNames(cmd)), ""
	if !cmd.HasParent() && near == "" {
		other = elsewhere[name]
	}
	meant := first(cmd, func(c *cobra.Command) bool { return c.Name() == name || slices.Contains(c.SuggestFor, name) })
	switch {
	case other != "" && (meant == nil || meant.Parent() != cmd):
		return exit.Usagef("%s uploads only; %s", cmd.Name(), other)
	case meant != nil:
		return exit.Usagef("%s, did you mean %s? See %s", none, commandLine(meant), HelpOf(cmd))
	case near != "":
		return exit.Usagef("%s, did you mean %s %s? See %s", none, commandLine(cmd), near, HelpOf(cmd))
	}
	return exit.Usagef("%s; see %s", none, HelpOf(cmd))
}

// commandNames returns the names of the commands directly below cmd.
func commandNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// below returns the commands below cmd, at any depth. Those of a command follow it.
func below(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range cmd.Commands() {
		all = append(append(all, c), below(c)...)
	}
	return all
}

// first returns the first command below cmd, at any depth, that is wanted, or nil.
func first(cmd *cobra.Command, wanted func(*cobra.Command) bool) *cobra.Command {
	all := below(cmd)
	if i := slices.IndexFunc(all, wanted); i >= 0 {
		return all[i]
	}
	return nil
}

// withFlag returns the first command below cmd that has the flag, or nil.
func withFlag(cmd *cobra.Command, flag string) *cobra.Command {
	return first(cmd, func(c *cobra.Command) bool { return c.Flags().Lookup(flag) != nil })
}

// NoCommand is the Args of a command that only has subcommands.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return nil
}

// AtLeast returns the Args of a command that takes n or more arguments. want
// describes them.
func AtLeast(n int, want string) cobra.PositionalArgs { return wanted(cobra.MinimumNArgs(n), want) }

// Exactly returns the Args of a command that takes n arguments. want describes them.
func Exactly(n int, want string) cobra.PositionalArgs { return wanted(cobra.ExactArgs(n), want) }

func wanted(check cobra.PositionalArgs, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) != nil {
			return exit.Usagef("%s: want %s; see %s", commandName(cmd), want, HelpOf(cmd))
		}
		return nil
	}
}

// NoArgs is the Args of a command without arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s: want no arguments, got %q; see %s", commandName(cmd), args[0], HelpOf(cmd))
	}
	return nil
}

// commandLine returns the words that run cmd.
func commandLine(cmd *cobra.Command) string {
	return strings.TrimSpace(process.Words() + " " + commandName(cmd))
}

// HelpOf returns the words that print the help of cmd.
func HelpOf(cmd *cobra.Command) string {
	return strings.TrimSpace(process.Words() + " help " + commandName(cmd))
}

// FlagsOf returns the words that print all flags of cmd.
func FlagsOf(cmd *cobra.Command) string {
	return strings.TrimSpace(process.Words() + " help " + flagsName + " " + commandName(cmd))
}

// commandName returns the path of cmd without the program's name.
func commandName(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
}

// Nearest returns the most similar of names, or "" if none is similar. Similar names
// are one edit away, or two if name is long, or begin with name.
func Nearest(name string, names []string) string {
	limit := 1
	if len(name) > 5 {
		limit = 2
	}
	best, least := "", limit+1
	for _, n := range names {
		d := distance(name, n, limit)
		if len(name) >= 3 && strings.HasPrefix(n, name) {
			d = min(d, limit)
		}
		if d < least && d < len(name) {
			best, least = n, d
		}
	}
	return best
}

// distance returns the optimal string alignment distance of a and b: the number of
// bytes to insert, delete, replace, or swap with their neighbor
// (https://en.wikipedia.org/wiki/Damerau%E2%80%93Levenshtein_distance).
// If it is larger than limit, the result is any larger number.
func distance(a, b string, limit int) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return distance(a[1:], b[1:], limit)
	case limit == 0:
		return 1
	}
	d := min(distance(a[1:], b, limit-1), distance(a, b[1:], limit-1), distance(a[1:], b[1:], limit-1))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, distance(a[2:], b[2:], limit-1))
	}
	return 1 + d
}
