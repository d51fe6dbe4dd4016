package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
)

// manDate returns the month of the pages: that of SOURCE_DATE_EPOCH, or this month.
func manDate(t *testing.T) string {
	t.Helper()
	at := time.Now()
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
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

// title begins a page. Without hyphenation and justification, names can be copied.
func (r *roff) title(name string, section int, date string) {
	fmt.Fprintf(r, ".TH %q %d %q gcsup gcsup\n.nh\n.ad l\n", strings.ToUpper(roffEscapes.Replace(name)), section, date)
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
	r.text("gcsup(1)")
	return r.String()
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
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, manName(cmd.Parent())+"(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			pages = append(pages, manName(c)+"(1)")
		}
	}
	if !cmd.HasParent() {
		for _, t := range topics() {
			if !t.Section {
				pages = append(pages, topicName(t)+"(7)")
			}
		}
	}
	r.text(strings.Join(pages, ", "))
	return r.String()
}
