package cmdline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section is a list of flags under one title.
type Section struct {
	Title string
	Flags []*pflag.Flag
}

// Sections returns the visible flags of a command. Those of the command itself are first, in
// the order in which it adds them. Those of groups follow, in the order of the groups. A group
// of which the command has one flag is no section.
func Sections(cmd *cobra.Command, groups []Group) []Section {
	own := Section{Title: "Flags"}
	var help *pflag.Flag
	rest := map[string]*pflag.Flag{}
	flags := inOrder(cmd)
	for _, f := range flags {
		switch {
		case f.Hidden:
		case f.Name == "help":
			help = f
		default:
			rest[f.Name] = f
		}
	}
	var shared []Section
	for _, g := range groups {
		s := Section{Title: g.title()}
		for _, name := range g.Flags {
			if f := rest[name]; f != nil {
				s.Flags = append(s.Flags, f)
			}
		}
		if len(s.Flags) < 2 {
			continue
		}
		for _, f := range s.Flags {
			delete(rest, f.Name)
		}
		shared = append(shared, s)
	}
	for _, f := range flags {
		if rest[f.Name] != nil {
			own.Flags = append(own.Flags, f)
		}
	}
	all := slices.Concat([]Section{own}, shared)
	if len(own.Flags) == 0 && len(shared) > 0 {
		all = shared
	}
	if help != nil {
		last := &all[len(all)-1]
		if len(own.Flags) > 0 {
			last = &all[0]
		}
		last.Flags = append(last.Flags, help)
	}
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Flags) == 0 })
}

// commonAnnotation marks a common flag.
const commonAnnotation = "gcsup_common"

// Common marks flags that most calls need. If a command has too many flags for a screen, its help
// lists only these.
func Common(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, commonAnnotation, []string{"true"}); err != nil {
			panic(err) // there is no such flag
		}
	}
}

const commonTitle = "Common flags"

// commonSection returns the common flags of a command and --help, in the order of Sections.
func commonSection(cmd *cobra.Command, groups []Group) Section {
	common := Section{Title: commonTitle}
	for _, s := range Sections(cmd, groups) {
		for _, f := range s.Flags {
			if f.Annotations[commonAnnotation] != nil {
				common.Flags = append(common.Flags, f)
			}
		}
	}
	if help := cmd.Flags().Lookup("help"); help != nil {
		common.Flags = append(common.Flags, help)
	}
	return common
}

// allSections returns the flags of root and of all commands below it: those of groups, as the first
// command has them, and then those of each command.
func allSections(root *cobra.Command, groups []Group) []Section {
	all := make([]Section, len(groups))
	found := map[string]*pflag.Flag{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		own := Section{Title: cmp.Or(commandName(cmd), cmd.Name())}
		for _, f := range inOrder(cmd) {
			switch {
			case f.Hidden || f.Name == "help" || found[f.Name] != nil:
			case slices.ContainsFunc(groups, func(g Group) bool { return slices.Contains(g.Flags, f.Name) }):
				found[f.Name] = f
			default:
				own.Flags = append(own.Flags, f)
			}
		}
		all = append(all, own)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "completion" {
				visit(c)
			}
		}
	}
	visit(root)
	for i, g := range groups {
		all[i].Title = g.title()
		for _, name := range g.Flags {
			if f := found[name]; f != nil {
				all[i].Flags = append(all[i].Flags, f)
			}
		}
	}
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Flags) == 0 })
}

// inOrder returns the flags of a command in the order in which they were added.
func inOrder(cmd *cobra.Command) (flags []*pflag.Flag) {
	all := cmd.Flags()
	sorted := all.SortFlags
	all.SortFlags = false
	all.VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	all.SortFlags = sorted // printed commands have their flags in the order of the alphabet
	return flags
}

// Label returns a flag with its value, such as --jobs N or --emulator[=DIR].
func Label(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Value.Type() == "bool" || name == "":
		return "--" + f.Name
	case f.NoOptDefVal != "":
		return "--" + f.Name + "[=" + name + "]"
	}
	return "--" + f.Name + " " + name
}

// Describe returns the description of a flag, with its default unless that is the zero value or
// in the description.
func Describe(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	value := f.DefValue
	if strings.Contains(text, "(default") || slices.Contains([]string{"", "[]", "0", "0s", "false"}, value) {
		return text
	}
	if strings.HasSuffix(value, "m0s") { // 2m0s, as package time writes two minutes
		value = strings.TrimSuffix(value, "0s")
	}
	value = strings.Trim(value, "[]") // of a list
	return text + " (default: " + value + ")"
}
