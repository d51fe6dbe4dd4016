package cmdline_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
)

// newCommands returns commands with flags of all kinds.
func newCommands() (root, cp *cobra.Command) {
	root = &cobra.Command{Use: "prog", Short: "Do things", Run: func(*cobra.Command, []string) {}}
	cp = &cobra.Command{Use: "cp SOURCE", Long: "cp copies\neach SOURCE. It takes a text that is longer than a line of a terminal with eighty columns.\n\n  verbatim   text\n\nThe end.", Run: root.Run}
	fs := cp.Flags()
	fs.Bool("zeal", false, "try hard")
	fs.BoolP("quick", "q", true, "be quick")
	fs.String("emulator", "", "send to an emulator in `DIR`")
	fs.Lookup("emulator").NoOptDefVal = "x"
	fs.Duration("wait", 2*time.Minute, "wait for a `DURATION` that is long enough to make this description wrap at the end of the line")
	fs.String("a-flag-with-a-name-that-is-longer-than-the-column", "", "of a `VALUE` (default: none)")
	fs.String("lonely", "", "alone in its group, with `TEXT`")
	fs.Bool("secret", false, "not shown")
	_ = fs.MarkHidden("secret")
	root.AddCommand(cp)
	return root, cp
}

var groups = []cmdline.Group{
	{Title: "How", About: "speed", Flags: []string{"wait", "quick"}},
	{Title: "Where", About: "place", Flags: []string{"lonely", "absent"}},
}

func TestCommand(t *testing.T) {
	root, cp := newCommands()
	h := &cmdline.Help{Groups: groups, Columns: 80}
	h.Install(root)
	cp.InitDefaultHelpFlag()
	const want = `cp copies each SOURCE. It takes a text that is longer than a line of a terminal
with eighty columns.

  verbatim   text

The end.

Usage:
  prog cp SOURCE [flags]

Flags:
      --zeal            try hard
      --emulator[=DIR]  send to an emulator in DIR
      --a-flag-with-a-name-that-is-longer-than-the-column VALUE
                        of a VALUE (default: none)
      --lonely TEXT     alone in its group, with TEXT
  -h, --help            help for cp

How (speed):
      --wait DURATION   wait for a DURATION that is long enough to make this
                        description wrap at the end of the line (default: 2m)
  -q, --quick           be quick (default: true)
`
	if got := h.Command(cp); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWidth checks that no line is longer than the terminal, except a line that is verbatim or a word.
func TestWidth(t *testing.T) {
	for _, columns := range []int{1, 40, 59, 60, 80, 200} {
		root, cp := newCommands()
		h := &cmdline.Help{Groups: groups, Columns: columns, Topics: []cmdline.Topic{{Name: "t", Text: "About them.", Entries: []cmdline.Entry{
			{Term: "A", Text: strings.Repeat("text ", 50)}, {Term: strings.Repeat("TERM, ", 50), Text: "text"},
		}}}}
		h.Install(root)
		texts := h.Command(root) + h.Command(cp) + h.Topic(h.Topics[0])
		longest := 0
		for line := range strings.Lines(texts) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); len(strings.Fields(line)) > 1 && !strings.Contains(line, "verbatim") && !strings.Contains(line, "longer-than") {
				longest = max(longest, n)
			}
		}
		if limit := max(columns, 21); longest >= limit || longest < limit*3/4 {
			t.Errorf("%d columns: the longest line has %d", columns, longest)
		}
	}
}
