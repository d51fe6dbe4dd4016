package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/require"
)

const referenceFile = "../../docs/reference/reference.md"

// defaultsTitle is the heading of the flag that all commands have, which is not repeated for each.
const defaultsTitle = "Defaults"

// TestReference checks that docs/reference/reference.md is what the tables of the help generate. With
// -update it writes the file.
func TestReference(t *testing.T) {
	want := reference()
	if *update {
		require.NoError(t, os.WriteFile(referenceFile, []byte(want), 0o666))
	}
	have, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	if string(have) == want {
		return
	}
	lines := strings.Split(string(have), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("docs/reference/reference.md differs in line %d, which should be\n%s\nrun go test ./cmd/gcsup -run TestReference -update", i+1, line)
		}
	}
	t.Fatal("docs/reference/reference.md has more lines than the program generates; run go test ./cmd/gcsup -run TestReference -update")
}

// reference returns the reference of the commands, the flags and the topics of the help.
func reference() string {
	r := &markdown{}
	r.WriteString("# Reference\n\n")
	r.paragraph("The program generates this page from the tables of its help: do not edit it. The man pages have the same texts. `gcsup help COMMAND` lists the common flags, `gcsup help flags COMMAND` all, and `gcsup help TOPIC` prints a topic. The [guides](../how-to) are organized by task.")
	r.paragraph("Results go to standard output. Progress, messages and errors go to standard error, one line each, with the prefix `gcsup: `. With `--json`, standard output is JSON Lines only.")
	root := commands()
	r.contents()
	r.WriteString("## Commands\n\n")
	all := leaves(root)
	for _, cmd := range all {
		if cmd.IsAvailableCommand() && cmd.Parent().Name() != "completion" {
			r.command(cmd)
		}
	}
	r.command(commandNamed(root, "completion"))
	r.WriteString("## Flags\n\n")
	r.paragraph("These flags have the same meaning in all commands that have them. Each has an environment variable: `GCSUP_LIMIT_RATE=20MiB` is `--limit-rate 20MiB`. See [Environment](#environment).")
	var without []string
	for _, cmd := range all {
		if cmd.LocalFlags().Lookup(configFlag) == nil && cmd.IsAvailableCommand() && cmd.Parent().Name() != "completion" {
			without = append(without, "`"+commandName(cmd)+"`")
		}
	}
	for _, g := range cmdline.Groups {
		fmt.Fprintf(r, "### %s\n\n", g.Title)
		about := strings.ToUpper(g.About[:1]) + g.About[1:] + "."
		if g.Title == defaultsTitle {
			about = "All commands have this flag, except " + strings.Join(append(without, "`completion`"), ", ") + "."
		}
		r.paragraph(about)
		var flags []*pflag.Flag
		for _, name := range g.Flags {
			flags = append(flags, firstWith(all, name))
		}
		r.flags(flags)
	}
	for _, topic := range topics() {
		r.topic(topic)
	}
	return strings.TrimRight(r.String(), "\n") + "\n"
}

// markdown writes a page of Markdown.
type markdown struct{ strings.Builder }

func (r *markdown) paragraph(text string) { r.WriteString(text + "\n\n") }

// contents writes links to the parts of the page.
func (r *markdown) contents() {
	r.WriteString("- [Commands](#commands)\n- [Flags](#flags): ")
	var groups []string
	for _, g := range cmdline.Groups {
		groups = append(groups, link(g.Title))
	}
	r.WriteString(strings.Join(groups, ", ") + "\n")
	for _, t := range topics() {
		fmt.Fprintf(r, "- %s: `gcsup help %s`\n", link(t.Title), t.Name)
	}
	r.WriteString("\n")
}

// link returns a link to a heading of the page.
func link(heading string) string {
	anchor := strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(heading))
	return fmt.Sprintf("[%s](#%s)", heading, anchor)
}

// command writes the part of a command: its help, with links to the groups of flags.
func (r *markdown) command(cmd *cobra.Command) {
	fmt.Fprintf(r, "### %s\n\n", cmd.CommandPath())
	r.verbatim(strings.Join(cmdline.Synopsis(cmd), "\n"))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for p := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") {
			r.verbatim(strings.Trim(p, "\n"))
		} else {
			r.paragraph(strings.Join(strings.Fields(escape(p)), " "))
		}
	}
	if cmd.Example != "" {
		var lines []string
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
		r.verbatim(strings.Join(lines, "\n"))
	}
	var own []*pflag.Flag
	var shared []string
	for _, s := range cmdline.Sections(cmd, cmdline.Groups) {
		title, _, grouped := strings.Cut(s.Title, " (")
		i := slices.IndexFunc(cmdline.Groups, func(g cmdline.Group) bool { return g.Title == title })
		if !grouped || i < 0 {
			own = append(own, s.Flags...)
			continue
		}
		shared = append(shared, link(title)+some(s.Flags, cmdline.Groups[i].Flags))
	}
	own = slices.DeleteFunc(own, func(f *pflag.Flag) bool { return f.Name == "help" || f.Name == configFlag })
	r.flags(own)
	if len(shared) > 0 {
		r.paragraph("Flags of groups: " + strings.Join(shared, "; ") + ".")
	}
}

// some returns which flags of a group a command has, by the shorter list: those that it has, or the
// others. It returns nothing if the command has all.
func some(flags []*pflag.Flag, group []string) string {
	var has, lacks []string
	for _, name := range group {
		if slices.ContainsFunc(flags, func(f *pflag.Flag) bool { return f.Name == name }) {
			has = append(has, "`--"+name+"`")
		} else {
			lacks = append(lacks, "`--"+name+"`")
		}
	}
	switch {
	case len(lacks) == 0:
		return ""
	case len(lacks) < len(has):
		return " (without " + strings.Join(lacks, ", ") + ")"
	}
	return " (only " + strings.Join(has, ", ") + ")"
}

// flags writes a table of flags.
func (r *markdown) flags(flags []*pflag.Flag) {
	if len(flags) == 0 {
		return
	}
	r.WriteString("| flag | meaning |\n|---|---|\n")
	for _, f := range flags {
		term := "`" + cell(cmdline.Label(f)) + "`"
		if f.Shorthand != "" {
			term = "`-" + f.Shorthand + "`, " + term
		}
		fmt.Fprintf(r, "| %s | %s |\n", term, cell(escape(cmdline.Describe(f))))
	}
	r.WriteString("\n")
}

// topic writes the part of a topic.
func (r *markdown) topic(t cmdline.Topic) {
	fmt.Fprintf(r, "## %s\n\n", t.Title)
	r.paragraph(strings.TrimSpace(t.Text))
	if len(t.Entries) == 0 {
		return
	}
	r.WriteString("| | |\n|---|---|\n")
	for _, e := range t.Entries {
		fmt.Fprintf(r, "| `%s` | %s |\n", cell(e.Term), cell(escape(e.Text)))
	}
	r.WriteString("\n")
}

func (r *markdown) verbatim(text string) { r.WriteString("```\n" + text + "\n```\n\n") }

// cell returns the text of a cell in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// escape returns plain text for a page.
func escape(text string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`, "_", `\_`).Replace(text)
}

// commandNamed returns the command of root with that name.
func commandNamed(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return c
		}
	}
	panic("no command " + name)
}

// firstWith returns a flag of the first command that has it.
func firstWith(all []*cobra.Command, name string) *pflag.Flag {
	for _, cmd := range all {
		if f := cmd.LocalFlags().Lookup(name); f != nil {
			return f
		}
	}
	panic("no command has --" + name)
}
