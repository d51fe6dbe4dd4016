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

// Command returns the help of a command.
func (h *Help) Command(cmd *cobra.Command) string {
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
	h.writeList(&b, "Commands", Commands(cmd))
	if !cmd.HasParent() {
		h.writeList(&b, "Topics", h.topics())
	}
	h.writeFlags(&b, cmd)
	if !cmd.HasParent() {
		more := "Use \"" + cmd.Name() + " help COMMAND\" for more."
		if len(h.Topics) > 0 {
			more = "Use \"" + cmd.Name() + " help COMMAND\" or \"" + cmd.Name() + " help TOPIC\" for more."
		}
		b.WriteString("\n")
		writeParagraphs(&b, more, h.width())
	} else if cmd.HasAvailableSubCommands() {
		b.WriteString("\n")
		writeParagraphs(&b, "Use \""+cmd.Root().Name()+" help "+cmd.Name()+" COMMAND\" for more.", h.width())
	}
	return b.String()
}

// Topic returns the text of a topic.
func (h *Help) Topic(t Topic) string {
	var b strings.Builder
	writeText(&b, ParseText(t.Text), h.width())
	if len(t.Entries) > 0 {
		b.WriteString("\n")
		writeEntries(&b, t.Entries, column(t.Entries, h.width()), h.width())
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

func (h *Help) topics() (entries []Entry) {
	for _, t := range h.Topics {
		entries = append(entries, Entry{t.Name, t.Short})
	}
	return entries
}

func (h *Help) writeList(b *strings.Builder, title string, entries []Entry) {
	if len(entries) > 0 {
		b.WriteString("\n" + title + ":\n")
		writeEntries(b, entries, column(entries, h.width()), h.width())
	}
}

func (h *Help) writeFlags(b *strings.Builder, cmd *cobra.Command) {
	sections := Sections(cmd, h.Groups)
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
		writeEntries(b, lists[i], column(all, h.width()), h.width())
	}
}
