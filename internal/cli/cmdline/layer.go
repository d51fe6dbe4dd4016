package cmdline

import (
	"os"
	"slices"
	"strconv"

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

// choose returns the values that count for flags that are not on the command line. given has the
// names of those that are. The first layer has the highest priority.
func (r *Rules) choose(flags *pflag.FlagSet, given map[string]bool, layers []Layer) Layer {
	chosen := Layer{}
	above := map[string]bool{} // the flags that have a value in a layer above
	for name := range given {
		above[name] = true
	}
	excluding := map[string]bool{} // those of them that exclude others
	for name := range given {
		excluding[name] = true
	}
	for _, layer := range layers {
		var found []string
		for name, value := range layer {
			f := flags.Lookup(name)
			if f == nil || above[name] || r.excluded(name, excluding) || value.source == fromFile && r.read(name) {
				continue
			}
			chosen[name] = value
			found = append(found, name)
		}
		for _, name := range found { // after the loop: two flags of one layer do not replace each other
			above[name] = true
			excluding[name] = excluding[name] || !chosen[name].off(flags.Lookup(name))
		}
	}
	for name := range chosen {
		other, needs := r.Needs[name]
		if needs && !given[other] && (chosen[other].Values == nil || chosen[other].off(flags.Lookup(other))) {
			delete(chosen, name)
		}
	}
	return chosen
}

// excluded reports whether a flag of names excludes the one with that name.
func (r *Rules) excluded(name string, names map[string]bool) bool {
	return slices.ContainsFunc(r.Exclusive, func(group []string) bool {
		return slices.Contains(group, name) && slices.ContainsFunc(group, func(other string) bool { return other != name && names[other] })
	})
}

// read reports whether a variable with another name that means the same as a flag is set.
func (r *Rules) read(name string) bool {
	variable := r.Reads[name]
	return variable != "" && os.Getenv(variable) != ""
}

// off reports whether the value leaves a flag out that is true or false, or that needs no value.
func (d Default) off(f *pflag.Flag) bool {
	if len(d.Values) != 1 || f.Value.Type() != "bool" && f.NoOptDefVal == "" {
		return false
	}
	on, err := strconv.ParseBool(d.Values[0])
	return err == nil && !on
}

// set sets a flag to the value.
func (d Default) set(cmd *cobra.Command, f *pflag.Flag) error {
	if err := d.Apply(cmd.Flags(), f); err != nil {
		return exit.Usagef("%w; see %s", err, HelpOf(cmd))
	}
	return nil
}

// Apply sets a flag in flags to the value. Its errors name the source of the value.
func (d Default) Apply(flags *pflag.FlagSet, f *pflag.Flag) error {
	optional := f.NoOptDefVal != "" && f.Value.Type() != "bool"
	if optional && d.off(f) {
		return nil // false is not the name of a directory
	}
	for _, value := range d.Values {
		if on, err := strconv.ParseBool(value); optional && err == nil && on {
			value = f.NoOptDefVal // as the flag without a value
		}
		if err := flags.Set(f.Name, value); err != nil {
			return exit.Usagef("%s %q: %s", d.label(f), value, Wanted(f, err))
		}
	}
	f.Annotations = map[string][]string{sourceOf: {string(d.source), d.Where}}
	return nil
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

// FromFile reports whether a flag got its value from a file.
func FromFile(f *pflag.Flag) bool { return annotated(f, fromFile) }

func annotated(f *pflag.Flag, s source) bool {
	a := f.Annotations[sourceOf]
	return len(a) == 2 && a[0] == string(s)
}

// Inherited reports whether a flag got its value from the environment or a file, which may be for other
// commands.
func Inherited(f *pflag.Flag) bool { return Origin(f) != "" }

// Origin returns where a flag got its value from: the name of a variable, or of a file with the line. It
// returns "" for the command line and for the default.
func Origin(f *pflag.Flag) string {
	if a := f.Annotations[sourceOf]; len(a) == 2 {
		return a[1]
	}
	return ""
}
