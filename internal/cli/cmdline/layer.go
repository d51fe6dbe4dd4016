package cmdline

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
)

// Layer has the values of flags from one source besides the command line, by the name of the flag.
type Layer map[string]Default

// Default is the value of a flag in a Layer.
type Default struct {
	Values []string // one, unless the flag can be repeated
	Where  string   // the name of the variable, or of the file with the line
	source source
}

// source is the kind of a Layer.
type source string

const (
	fromEnv  source = "environment"
	fromFile source = "file"
)

// InFile returns the value of a flag at a line of a file.
func InFile(path string, line int, values ...string) Default {
	return Default{Values: values, Where: AtLine(path, line), source: fromFile}
}

// AtLine returns the name of a line in a file.
func AtLine(path string, line int) string { return path + " line " + strconv.Itoa(line) }

// environment returns the layer of the environment variables of the flags.
func (r *Rules) environment(flags *pflag.FlagSet) Layer {
	layer := Layer{}
	flags.VisitAll(func(f *pflag.Flag) {
		if value := os.Getenv(Variable(f.Name)); value != "" && !f.Hidden && !slices.Contains(r.None, f.Name) {
			layer[f.Name] = Default{Values: []string{value}, Where: Variable(f.Name), source: fromEnv}
		}
	})
	return layer
}

// optional reports whether a flag needs no value, and is not true or false.
func optional(f *pflag.Flag) bool { return f.NoOptDefVal != "" && f.Value.Type() != "bool" }

// on reports whether the value is not empty, and does not leave out a flag that is true or false,
// or that needs no value.
func (d Default) on(f *pflag.Flag) bool {
	if len(d.Values) == 0 || len(d.Values) == 1 && d.Values[0] == "" {
		return false
	}
	if len(d.Values) > 1 || f.Value.Type() != "bool" && !optional(f) {
		return true
	}
	on, err := strconv.ParseBool(d.Values[0])
	return !isOff(f, d.Values[0]) && (err != nil || on)
}

// takesOff reports whether a flag that needs no value has the value off.
func takesOff(f *pflag.Flag) bool {
	return optional(f) && slices.Contains(strings.Split(f.Value.Type(), "|"), off)
}

// isOff reports whether the value of a flag turns it off.
func isOff(f *pflag.Flag, value string) bool { return value == off && takesOff(f) }

// texts returns the values as a flag gets them. For a flag that needs no value, true is its default, and
// false is off, or no value if the flag does not have off.
func (d Default) texts(f *pflag.Flag) []string {
	on, err := strconv.ParseBool(strings.Join(d.Values, " "))
	switch {
	case !optional(f) || err != nil:
		return d.Values
	case on:
		return []string{f.NoOptDefVal}
	case takesOff(f):
		return []string{off}
	}
	return nil // false is not the name of a directory
}

// set sets a flag to the value.
func (d Default) set(cmd *cobra.Command, f *pflag.Flag) error {
	if err := d.Apply(cmd.Flags(), f); err != nil {
		return exit.Usagef("%w; see %s", err, FlagsOf(cmd))
	}
	return nil
}

// Apply sets a flag in flags to the value. Its errors name the source of the value.
func (d Default) Apply(flags *pflag.FlagSet, f *pflag.Flag) error {
	texts := d.texts(f)
	if len(texts) == 0 {
		return nil
	}
	for _, value := range texts {
		if err := flags.Set(f.Name, value); err != nil {
			return exit.Usagef("%s %q: %s", d.label(f), value, Wanted(f, err))
		}
	}
	return flags.SetAnnotation(f.Name, sourceOf, []string{string(d.source), d.Where})
}

// label returns where the value is, with the name of the flag if that is not clear.
func (d Default) label(f *pflag.Flag) string {
	if d.source == fromFile {
		return d.Where + ": " + f.Name
	}
	return d.Where
}

// sourceOf annotates a flag that got its value from a layer.
const sourceOf = "gcsup_source"

// FromEnvironment reports whether a flag got its value from the environment.
func FromEnvironment(f *pflag.Flag) bool { return annotated(f, fromEnv) }

// OnCommandLine reports whether a flag is on the command line.
func OnCommandLine(f *pflag.Flag) bool { return f.Changed && !inherited(f) }

// FromFile reports whether a flag got its value from a file.
func FromFile(f *pflag.Flag) bool { return annotated(f, fromFile) }

func annotated(f *pflag.Flag, s source) bool {
	a := f.Annotations[sourceOf]
	return len(a) == 2 && a[0] == string(s)
}

// inherited reports whether a flag got its value from the environment or a file.
func inherited(f *pflag.Flag) bool { return origin(f) != "" }

// origin returns where a flag got its value from: the name of a variable, or of a file with the line. It
// returns "" for the command line and for the default.
func origin(f *pflag.Flag) string {
	if a := f.Annotations[sourceOf]; len(a) == 2 {
		return a[1]
	}
	return ""
}
