package cmdline

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/process"
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
	if columns, _, ok := process.Terminal(w); ok {
		return columns
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

// The help of a command has at most this many lines, on a terminal of this width.
const screenLines, screenWidth = 48, 79

// Command returns the help of a command. If it is longer than a screen with all flags, it lists
// only the common ones.
func (h *Help) Command(cmd *cobra.Command) string {
	blocks := h.command(cmd, Sections(cmd, h.Groups))
	if strings.Count(render(blocks, screenWidth), "\n") > screenLines {
		blocks = h.command(cmd, []Section{commonSection(cmd, h.Groups)})
	}
	return render(blocks, h.width())
}

// command returns the help of a command with these flags.
func (h *Help) command(cmd *cobra.Command, flags []Section) []Block {
	blocks := ParseText(cmp.Or(cmd.Long, cmd.Short+"."))
	add := func(title string, entries []Entry) {
		if len(entries) > 0 {
			blocks = append(blocks, Block{Heading: title}, Block{Entries: entries})
		}
	}
	var usage, topics []Entry
	for _, line := range Synopsis(cmd) {
		usage = append(usage, Entry{line, ""})
	}
	add("Usage", usage)
	if cmd.Example != "" {
		blocks = append(append(blocks, Block{Heading: "Examples"}), ParseText(cmd.Example)...)
	}
	add("Commands", Commands(cmd))
	if !cmd.HasParent() && len(h.Topics) > 0 {
		var names []string
		for _, t := range h.Topics {
			names = append(names, t.Name)
		}
		topics = []Entry{{strings.Join(names, ", "), ""}}
	}
	add("Topics", topics)
	return append(append(blocks, flagBlocks(flags)...), h.more(cmd, flags)...)
}

// more names the commands that print what the help of a command with these flags does not have.
func (h *Help) more(cmd *cobra.Command, flags []Section) []Block {
	var texts []string
	about := func(what string, words ...string) {
		texts = append(texts, `"`+strings.Join(append([]string{cmd.Root().Name(), "help"}, words...), " ")+`" for `+what)
	}
	switch {
	case !cmd.HasParent():
		about("a command", "COMMAND")
		about("the flags of all commands", flagsName)
	case IsGroup(cmd):
		about("more", commandName(cmd), "COMMAND")
	case len(flags) == 1 && flags[0].Title == commonTitle:
		about("all flags", flagsName, commandName(cmd))
	default:
		return nil
	}
	if len(h.Topics) > 0 && !IsGroup(cmd) || !cmd.HasParent() {
		about("more", topicsName)
	}
	return []Block{{Paragraph: "Use " + strings.Join(texts, ", and ") + "."}}
}

// Flags returns the list of all flags of a command; for the program, of all commands.
func (h *Help) Flags(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return render(flagBlocks(allSections(cmd, h.Groups)), h.width())
	}
	return render(flagBlocks(Sections(cmd, h.Groups)), h.width())
}

// flagBlocks returns a list for each section.
func flagBlocks(sections []Section) (blocks []Block) {
	for _, s := range sections {
		var list []Entry
		for _, f := range s.Flags {
			short := "    "
			if f.Shorthand != "" {
				short = "-" + f.Shorthand + ", "
			}
			list = append(list, Entry{short + Label(f), Describe(f)})
		}
		blocks = append(blocks, Block{Heading: s.Title}, Block{Entries: list})
	}
	return blocks
}

// Topic returns the text of a topic.
func (h *Help) Topic(t Topic) string {
	blocks := ParseText(t.Text)
	if len(t.Entries) > 0 {
		blocks = append(blocks, Block{Entries: t.Entries})
	}
	return render(blocks, h.width())
}

// IsGroup reports whether a command only contains others. One with flags of its own also does something itself.
func IsGroup(cmd *cobra.Command) bool {
	own := false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { own = own || f.Name != "help" })
	return cmd.HasAvailableSubCommands() && (!own || !cmd.HasParent())
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
