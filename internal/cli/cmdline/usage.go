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
	name, dashes := unknown.GetSpecifiedName(), "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	if dashes == "-" {
		if long := longName(cmd, unknown.GetSpecifiedShortnames()); long != "" {
			return exit.Usagef("unknown flag -%s, did you mean --%s? See %s", name, long, FlagsOf(cmd))
		}
	}
	if advice := peerAdvice(cmd, name); advice != "" {
		return exit.Usagef("unknown flag %s%s: %s; see %s", dashes, name, advice, FlagsOf(cmd))
	}
	if dashes == "-" {
		return exit.Usagef("unknown flag -%s; see %s", name, FlagsOf(cmd))
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := Nearest(name, names); near != "" {
		return exit.Usagef("unknown flag --%s, did you mean --%s? See %s", name, near, FlagsOf(cmd))
	}
	if c := withFlag(cmd, name); c != nil {
		return exit.Usagef("unknown flag --%s here: flags come after the command, as in %s --%s", name, commandLine(c), name)
	}
	return exit.Usagef("unknown flag --%s; see %s", name, FlagsOf(cmd))
}

// longName returns the name of a flag that was given with one dash, such as -recursive, or "". rest is
// what remains after the letters that are shorthands.
func longName(cmd *cobra.Command, rest string) (long string) {
	rest, _, _ = strings.Cut(rest, "=")
	if len(rest) < 2 {
		return ""
	}
	check := func(name string) {
		letters, ok := strings.CutSuffix(name, rest)
		if ok && !strings.ContainsFunc(letters, func(r rune) bool { return cmd.Flags().ShorthandLookup(string(r)) == nil }) {
			long = name
		}
	}
	for _, name := range PeerFlags(cmd) {
		check(name)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { check(f.Name) })
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
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	near := Nearest(name, names)
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, name) {
			return exit.Usagef("%s, did you mean %s? See %s", none, commandLine(c), HelpOf(cmd))
		}
	}
	if other, ok := elsewhere[name]; ok && !cmd.HasParent() && near == "" {
		return exit.Usagef("%s uploads only; %s", cmd.Name(), other)
	}
	if !cmd.HasParent() {
		if c := below(cmd, name); c != nil {
			return exit.Usagef("%s, did you mean %s? See %s", none, commandLine(c), HelpOf(cmd))
		}
	}
	if near != "" {
		return exit.Usagef("%s, did you mean %s %s? See %s", none, commandLine(cmd), near, HelpOf(cmd))
	}
	return exit.Usagef("%s; see %s", none, HelpOf(cmd))
}

// below returns the command below a subcommand of cmd that has the name or is
// suggested for it, or nil.
func below(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		for _, sub := range c.Commands() {
			if sub.Name() == name || slices.Contains(sub.SuggestFor, name) {
				return sub
			}
		}
	}
	return nil
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
func AtLeast(n int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return exit.Usagef("%s: want %s; see %s", commandName(cmd), want, HelpOf(cmd))
		}
		return nil
	}
}

// Exactly returns the Args of a command that takes n arguments. want describes them.
func Exactly(n int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
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

// withFlag returns the first subcommand of cmd that has the flag, or nil.
func withFlag(cmd *cobra.Command, flag string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Flags().Lookup(flag) != nil {
			return c
		}
		if found := withFlag(c, flag); found != nil {
			return found
		}
	}
	return nil
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
		d := distance(name, n)
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
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			d[i][j] = min(cost, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
