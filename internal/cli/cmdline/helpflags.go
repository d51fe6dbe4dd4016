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

// has reports whether the section has a flag of that name.
func (s *Section) has(name string) bool {
	return slices.ContainsFunc(s.Flags, func(f *pflag.Flag) bool { return f.Name == name })
}

// section returns those of the flags that are in the group, in its order.
func (g *Group) section(flags []*pflag.Flag) Section {
	s := Section{Title: g.Title + " (" + g.About + ")"}
	for _, name := range g.Flags {
		if i := slices.IndexFunc(flags, func(f *pflag.Flag) bool { return f.Name == name }); i >= 0 {
			s.Flags = append(s.Flags, flags[i])
		}
	}
	return s
}

// Sections returns the visible flags of a command. Those of the command itself are first, in
// the order in which it adds them. Those of groups follow, in the order of the groups. A group
// of which the command has one flag is no section.
func Sections(cmd *cobra.Command, groups []Group) []Section {
	all := []Section{{"Flags", inOrder(cmd)}}
	for _, g := range groups {
		if s := g.section(all[0].Flags); len(s.Flags) > 1 {
			all = append(all, s)
			all[0].Flags = slices.DeleteFunc(all[0].Flags, func(f *pflag.Flag) bool { return s.has(f.Name) })
		}
	}
	if last := len(all) - 1; last > 0 && len(all[0].Flags) == 1 && all[0].has("help") {
		all[last].Flags = append(all[last].Flags, all[0].Flags...)
		all = all[1:]
	}
	return withoutEmpty(all)
}

func withoutEmpty(all []Section) []Section {
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Flags) == 0 })
}

// allSections returns the flags of root and of all commands below it: those of groups, as the first
// command has them, and then those of each command.
func allSections(root *cobra.Command, groups []Group) (all []Section) {
	commands := slices.DeleteFunc(append([]*cobra.Command{root}, below(root)...), func(c *cobra.Command) bool {
		return c != root && (!c.IsAvailableCommand() || c.Name() == "completion" || c.Parent().Name() == "completion")
	})
	var flags []*pflag.Flag
	for _, c := range commands {
		flags = append(flags, inOrder(c)...)
	}
	for _, g := range groups {
		all = append(all, g.section(flags))
	}
	for _, c := range commands {
		own := slices.DeleteFunc(inOrder(c), func(f *pflag.Flag) bool {
			return f.Name == "help" || slices.ContainsFunc(groups, func(g Group) bool { return slices.Contains(g.Flags, f.Name) })
		})
		all = append(all, Section{cmp.Or(commandName(c), c.Name()), own})
	}
	return withoutEmpty(all)
}

const (
	commonAnnotation = "gcsup_common"
	commonTitle      = "Common flags"
)

// Common marks flags that most calls need. If a command has too many flags for a screen, its help
// lists only these.
func Common(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, commonAnnotation, []string{"true"}); err != nil {
			panic(err) // there is no such flag
		}
	}
}

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
	common.Flags = append(common.Flags, cmd.Flags().Lookup("help"))
	return common
}

// inOrder returns the visible flags of a command in the order in which they were added.
func inOrder(cmd *cobra.Command) (flags []*pflag.Flag) {
	all := cmd.Flags()
	sorted := all.SortFlags
	all.SortFlags = false
	all.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f)
		}
	})
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
	if strings.Contains(text, "(default") || slices.Contains([]string{"", "[]", "0", "0s", "false"}, f.DefValue) {
		return text
	}
	value := strings.Trim(f.DefValue, "[]") // of a list
	if strings.HasSuffix(value, "m0s") {    // 2m0s, as package time writes two minutes
		value = strings.TrimSuffix(value, "0s")
	}
	return text + " (default: " + value + ")"
}
