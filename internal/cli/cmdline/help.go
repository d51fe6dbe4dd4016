package cmdline

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Help is the help of a program.
type Help struct {
	Groups  []Group
	Topics  []Topic
	Columns int // of the terminal
}

// Topic is a text about all commands.
type Topic struct {
	Name    string // as in gcsup help NAME
	Title   string // of the section or the page in man pages
	Short   string
	Text    string  // for ParseText
	Entries []Entry // after the text
	Section bool    // is a section of each man page, and not a page of its own
}

// Columns returns the width of the terminal w, or 80 if w is not a terminal.
func Columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// width returns the length of the longest line.
func (h *Help) width() int { return max(h.Columns-1, 20) }

// Install makes root and the commands below it print this help.
func (h *Help) Install(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = io.WriteString(cmd.OutOrStdout(), h.Command(cmd))
	})
}

// screen is how many lines of 80 columns the help of a command has at most.
const screen = 48

// Command returns the help of a command. If it is longer than a screen with all flags, it lists
// only the common ones.
func (h *Help) Command(cmd *cobra.Command) string {
	usual, flags := &Help{h.Groups, h.Topics, 80}, Sections(cmd, h.Groups)
	if strings.Count(usual.command(cmd, flags), "\n") > screen {
		flags = []Section{commonSection(cmd, h.Groups)}
	}
	return h.command(cmd, flags)
}

// command returns the help of a command with these flags.
func (h *Help) command(cmd *cobra.Command, flags []Section) string {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	writeParagraphs(&b, text, h.width())
	b.WriteString("\nUsage:\n")
	for _, line := range Synopsis(cmd) {
		b.WriteString("  " + strings.Join(fill(line, h.width()-6), "\n      ") + "\n")
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if commands := Commands(cmd); len(commands) > 0 {
		b.WriteString("\nCommands:\n")
		writeEntries(&b, commands, h.width())
	}
	if !cmd.HasParent() && len(h.Topics) > 0 {
		var names []string
		for _, t := range h.Topics {
			names = append(names, t.Name)
		}
		b.WriteString("\nTopics:\n  " + strings.Join(fill(strings.Join(names, ", "), h.width()-2), "\n  ") + "\n")
	}
	h.writeFlags(&b, flags)
	if more := h.more(cmd, flags); more != "" {
		b.WriteString("\n")
		writeParagraphs(&b, more, h.width())
	}
	return b.String()
}

// more returns what leads to the texts that the help of a command with these flags does not have.
func (h *Help) more(cmd *cobra.Command, flags []Section) string {
	help := `"` + cmd.Root().Name() + " help "
	switch {
	case !cmd.HasParent() && len(h.Topics) > 0:
		return "Use " + help + `COMMAND" or ` + help + `TOPIC" for more, ` + help + topicsName + `" for a list of the topics, and ` + help + flagsName + `" for the flags of all commands.`
	case !cmd.HasParent():
		return "Use " + help + `COMMAND" for more, and ` + help + flagsName + `" for the flags of all commands.`
	case cmd.HasAvailableSubCommands():
		return "Use " + help + commandName(cmd) + ` COMMAND" for more.`
	case len(flags) != 1 || flags[0].Title != commonTitle:
		return ""
	case len(h.Topics) == 0:
		return "Use " + help + flagsName + " " + commandName(cmd) + `" for all flags.`
	}
	return "Use " + help + flagsName + " " + commandName(cmd) + `" for all flags, and ` + help + topicsName + `" for more.`
}

// Flags returns the list of all flags of a command; for the program, of all commands.
func (h *Help) Flags(cmd *cobra.Command) string {
	sections := Sections(cmd, h.Groups)
	if !cmd.HasParent() {
		sections = allSections(cmd, h.Groups)
	}
	var b strings.Builder
	h.writeFlags(&b, sections)
	return strings.TrimPrefix(b.String(), "\n")
}

// Topic returns the text of a topic.
func (h *Help) Topic(t Topic) string {
	var b strings.Builder
	writeText(&b, ParseText(t.Text), h.width())
	if len(t.Entries) > 0 {
		b.WriteString("\n")
		writeEntries(&b, t.Entries, h.width())
	}
	return b.String()
}

// Synopsis returns the ways to call a command.
func Synopsis(cmd *cobra.Command) (lines []string) {
	if cmd.Runnable() {
		lines = append(lines, cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		lines = append(lines, cmd.CommandPath()+" COMMAND")
	}
	return lines
}

// Commands returns the commands below a command.
func Commands(cmd *cobra.Command) (entries []Entry) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			entries = append(entries, Entry{c.Name(), c.Short})
		}
	}
	return entries
}

func (h *Help) writeFlags(b *strings.Builder, sections []Section) {
	lists, all := make([][]Entry, len(sections)), []Entry{}
	for i, s := range sections {
		for _, f := range s.Flags {
			left := "    "
			if f.Shorthand != "" {
				left = "-" + f.Shorthand + ", "
			}
			lists[i] = append(lists[i], Entry{left + Label(f), Describe(f)})
		}
		all = append(all, lists[i]...)
	}
	for i, s := range sections {
		b.WriteString("\n" + s.Title + ":\n")
		writeAligned(b, lists[i], column(all, h.width()), h.width())
	}
}
