package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/require"
)

// manDate returns the month of the pages: that of SOURCE_DATE_EPOCH, or this month.
func manDate(t *testing.T) string {
	t.Helper()
	at := time.Now()
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		at = time.Unix(seconds, 0)
	}
	return at.UTC().Format("Jan 2006")
}

// manName returns the name of the page of a command.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff writes a page in the language of groff_man(7).
type roff struct{ strings.Builder }

// A line of JSON may be broken between its fields.
var roffEscapes = strings.NewReplacer(`\`, `\e`, `,"`, `,\:"`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// text writes lines of text. A period at the beginning of a line would be a request.
func (r *roff) text(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		line = roffEscapes.Replace(line)
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		r.WriteString(line + "\n")
	}
}

func (r *roff) section(title string) { fmt.Fprintf(r, ".SH %s\n", title) }

// entries writes a list of terms and their descriptions.
func (r *roff) entries(entries []cmdline.Entry) {
	for _, e := range entries {
		fmt.Fprintf(r, ".TP\n\\fB%s\\fP\n", roffEscapes.Replace(e.Term))
		r.text(e.Text)
	}
}

// table writes a table in the language of tbl(1). The cells are text blocks, which are filled.
func (r *roff) table(t *cmdline.Table) {
	const between = "\t"
	columns := strings.Repeat(" lx", len(t.Head)-1)
	fmt.Fprintf(r, ".TS\ntab(%s) nowarn;\nlb%s\nlx%s.\n", between, strings.ReplaceAll(columns, "lx", "lb"), columns)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			if i > 0 {
				r.WriteString(between)
			}
			r.WriteString("T{\n")
			var text roff
			text.text(cmdline.Plain(cell))
			r.WriteString(strings.NewReplacer("/", `/\:`, "=", `=\:`).Replace(text.String())) // a long word may be broken there
			r.WriteString("T}")
		}
		r.WriteString("\n")
	}
	r.WriteString(".TE\n")
}

// verbatim writes lines that are not filled.
func (r *roff) verbatim(s string) {
	r.WriteString(".nf\n")
	r.text(s)
	r.WriteString(".fi\n")
}

// paragraphs writes the text of a help. Lines that begin with white space are verbatim.
func (r *roff) paragraphs(s string) {
	for p := range strings.SplitSeq(strings.Trim(s, "\n"), "\n\n") {
		r.WriteString(".PP\n")
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") {
			r.verbatim(p)
		} else {
			r.text(strings.Trim(p, "\n"))
		}
	}
}

// blocks writes the text of a topic.
func (r *roff) blocks(text string) {
	for _, b := range cmdline.ParseText(text) {
		switch {
		case b.Heading != "":
			fmt.Fprintf(r, ".SS %s\n", roffEscapes.Replace(cmdline.Plain(b.Heading)))
		case b.Paragraph != "":
			r.WriteString(".PP\n")
			r.text(cmdline.Plain(b.Paragraph))
		case b.Table != nil && len(b.Table.Head) > 2:
			r.table(b.Table)
		case b.Table != nil:
			r.entries(b.Table.Entries())
		case b.Verbatim != nil:
			r.WriteString(".PP\n")
			r.verbatim(strings.Join(b.Verbatim, "\n"))
		}
		for _, item := range b.Items {
			r.WriteString(".IP \\(bu 2\n")
			r.text(cmdline.Plain(item))
		}
	}
}

// title begins a page. Its first line makes man call tbl. Without hyphenation and justification, names can be copied.
func (r *roff) title(name string, section int, date string) {
	fmt.Fprintf(r, "'\\\" t\n.TH %q %d %q gcsup gcsup\n.nh\n.ad l\n", strings.ToUpper(roffEscapes.Replace(name)), section, date)
}

// topicName returns the name of the page of a topic.
func topicName(t cmdline.Topic) string { return "gcsup-" + t.Name }

// topicPage returns the page of a topic.
func topicPage(t cmdline.Topic, date string) string {
	r := &roff{}
	r.title(topicName(t), 7, date)
	r.section("NAME")
	r.text(topicName(t) + " - " + t.Short)
	r.section("DESCRIPTION")
	r.blocks(t.Text)
	r.entries(t.Entries)
	r.section("SEE ALSO")
	pages := []string{"gcsup(1)"}
	for _, cmd := range allCommands() {
		if concerns(t, cmd) {
			pages = append(pages, manName(cmd)+"(1)")
		}
	}
	for _, other := range topics() {
		if other.Name != t.Name && strings.Contains(t.Text, "(#"+anchor(other.Title)+")") {
			pages = append(pages, topicName(other)+"(7)")
		}
	}
	r.text(strings.Join(pages, ", "))
	return r.String()
}

// anchor returns the anchor of a heading in docs/reference/reference.md.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, ",", "")), " ", "-")
}

// allCommands returns the commands that have pages, without the program.
func allCommands() []*cobra.Command {
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	return leaves(root)
}

// concerns reports whether a topic describes a flag of a command, or names the command.
func concerns(t cmdline.Topic, cmd *cobra.Command) bool {
	text := t.Text
	for _, e := range t.Entries {
		text += "\n" + e.Term + ": " + e.Text
	}
	words := strings.TrimPrefix(cmd.CommandPath(), "gcsup ")
	if regexp.MustCompile("(gcsup |`)" + words + "[ `\n:,]").MatchString(text) {
		return true
	}
	found := false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		found = found || !widespread[f.Name] && regexp.MustCompile("--"+f.Name+"([^a-z-]|$)").MatchString(text)
	})
	return found
}

// widespread are flags of most commands.
var widespread = map[string]bool{"help": true, "config": true, "json": true, "quiet": true, "verbose": true, "endpoint": true, "emulator": true, "state": true, "state-dir": true,
	"no-state": true, "state-key-file": true, "credentials-file": true, "billing-project": true}

// seeAlso returns the pages that the page of a command names.
func seeAlso(cmd *cobra.Command) (pages []string) {
	if cmd.HasParent() {
		pages = append(pages, manName(cmd.Parent())+"(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			pages = append(pages, manName(c)+"(1)")
		}
	}
	if cmd.HasParent() && cmd.Parent().HasParent() {
		for _, c := range cmd.Parent().Commands() {
			if c != cmd && c.IsAvailableCommand() {
				pages = append(pages, manName(c)+"(1)")
			}
		}
	}
	for _, t := range topics() {
		if !cmd.HasParent() || !t.Section && concerns(t, cmd) {
			pages = append(pages, topicName(t)+"(7)")
		}
	}
	return pages
}

// manPage returns the page of a command.
func manPage(cmd *cobra.Command, date string) string {
	r := &roff{}
	r.title(manName(cmd), 1, date)
	r.section("NAME")
	r.text(manName(cmd) + " - " + cmd.Short)
	r.section("SYNOPSIS")
	r.verbatim(strings.Join(cmdline.Synopsis(cmd), "\n"))
	r.section("DESCRIPTION")
	if cmd.Long == "" {
		r.paragraphs(cmd.Short + ".")
	} else {
		r.paragraphs(cmd.Long)
	}
	if commands := cmdline.Commands(cmd); len(commands) > 0 {
		r.section("COMMANDS")
		r.entries(commands)
	}
	r.section("OPTIONS")
	for _, s := range cmdline.Sections(cmd, cmdline.Groups) {
		if s.Title != "Flags" {
			fmt.Fprintf(r, ".SS %s\n", s.Title)
		}
		for _, f := range s.Flags {
			term := cmdline.Label(f)
			if f.Shorthand != "" {
				term = "-" + f.Shorthand + ", " + term
			}
			r.entries([]cmdline.Entry{{Term: term, Text: cmdline.Describe(f)}})
		}
	}
	for _, t := range topics() {
		if t.Section {
			r.section(strings.ToUpper(t.Title))
			r.blocks(t.Text)
			r.entries(t.Entries)
		}
	}
	if cmd.Example != "" {
		r.section("EXAMPLES")
		r.verbatim(cmd.Example)
	}
	r.section("SEE ALSO")
	r.text(strings.Join(seeAlso(cmd), ", "))
	return r.String()
}
