package screen

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gcsup/internal/cli/readable"
	"gcsup/upload"
)

// layout has the widths of the columns of a frame. They depend only on the width of the terminal, so that
// columns do not move from frame to frame.
type layout struct {
	columns   int // used columns of the terminal; the last one stays free
	name, bar int // bar is 0 for none
	bytes     int // 0 for none
	state     int // 0 for none
}

// Widths of the terminal at which the layout changes, and of its columns.
const (
	mediumColumns = 70
	wideColumns   = 150
	percentWidth  = 4
	bytesWidth    = 51 // "1023.99 GiB sent, 1023.99 GiB committed of 1023 GiB"
	stateWidth    = 36 // "retry 12 in 32 s: connection refused"
	narrowState   = 12 // "1023 MiB/s", "32 s refused"
	rateWidth     = 10 // "1023 MiB/s"
	etaWidth      = 12 // "ETA 99:59:59"
)

// Widths of a bar with its brackets. It gets half of the columns that a terminal has more than the
// narrowest one with a bar needs.
const (
	minBar  = 12
	maxBar  = 52
	barFrom = 37 // columns for the name and the bar, from which on the bar grows
)

// If a terminal gets narrower, it breaks the lines of the frame. In a wide one some columns are free: the first
// step in which a window is made narrower then breaks no line. From maxColumns down to 80 columns, each line
// becomes two. More rows could be more than the terminal has: those at the top could not be erased any more.
const (
	freeColumns = 9
	maxColumns  = 159
)

func layoutFor(columns int) layout {
	l := layout{columns: min(max(columns-1, 1), max(columns-freeColumns, 79), maxColumns)}
	switch {
	case columns < mediumColumns:
		return l.with(0, narrowState, false)
	case columns < wideColumns:
		return l.with(0, stateWidth, true)
	}
	return l.with(bytesWidth, stateWidth, true)
}

// with returns the layout with these widths. The name and the bar get the columns that are left.
func (l layout) with(bytes, state int, bar bool) layout {
	l.name, l.bar, l.bytes, l.state = l.columns-percentWidth-1, 0, bytes, state
	l.name -= bytes + min(bytes, 1) + state + min(state, 1) // with a space before each
	if bar {
		l.bar = min(max(minBar+(l.name-barFrom)/2, minBar), maxBar)
		l.name -= l.bar + 1
	}
	l.name = max(l.name, 0)
	return l
}

// brief reports whether the terminal is narrow, so that a state has a short form.
func (l layout) brief() bool { return l.state < stateWidth }

// line returns text as a line of a frame.
func (l layout) line(text, color string) liveLine {
	return liveLine{readable.Shorten(strings.TrimRight(text, " "), l.columns), color}
}

// liveLine is one line of a frame.
type liveLine struct {
	text  string
	color string // an SGR parameter of ECMA-48, "" for none
}

const (
	yellow = "33"
	red    = "31"
)

// frame returns the lines for a terminal of that size: one for each active file,
// the number of those that do not fit, and the totals.
func (d *Display) frame(now time.Time, columns, height int) (lines []liveLine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.began && d.run.single() {
		return nil // nothing is known yet, not even whether the file can be read
	}
	l := layoutFor(columns)
	if t := d.only(); t != nil {
		lines = l.only(t, now)
	} else {
		totals := d.totalLines(l, now)
		if listing := d.waitingListing(now); listing != nil {
			lines = append(lines, l.row(listing, now))
		}
		rows := d.visible(min(maxRows, max(height-len(totals)-len(lines)-2, 1)), now)
		for _, t := range rows {
			lines = append(lines, l.row(t, now))
		}
		if more := len(d.active) - len(rows); more > 0 {
			text, verb := fmt.Sprintf("and %d more", more), "sent"
			if d.run.Work == Comparing {
				verb = "compared"
			}
			if len(rows) == 0 {
				text = readable.Plural(more, "file is being "+verb, "files are being "+verb)
			}
			lines = append(lines, l.line(text, ""))
		}
		lines = append(lines, totals...)
	}
	// A frame that is higher than the terminal could not be replaced.
	return lines[max(len(lines)-max(height, 1), 0):]
}

// only returns the lines of the only file. A run of one file has no totals: they would repeat its
// line, with another rate.
func (l layout) only(t *activeFile, now time.Time) []liveLine {
	if l.bytes > 0 {
		return []liveLine{l.row(t, now)}
	}
	state, color := t.state(now, l.brief())
	width := max(l.columns-l.state-2, shareWidth)
	amount := shareText(t.work, t.highest, t.size, width)
	if t.last.ToCompare > 0 {
		amount = shareText(Comparing, t.last.Compared, t.last.ToCompare, width)
	} else if width >= bytesWidth {
		amount = t.bytesText()
	}
	second := readable.Fit(amount, min(width, bytesWidth)) + "  " + state
	if l.brief() {
		second = readable.Fit(amount, shareWidth) + " " + strings.TrimLeft(state, " ")
		rate := t.meter.rate(now)
		if text := readable.Rate(rate); text != "" && strings.HasSuffix(state, text) {
			second += " " + strings.TrimPrefix(etaText(t.size-t.sent, rate), "ETA ")
		}
	}
	first := l.with(0, 0, l.bar > 0).row(t, now)
	return []liveLine{{first.text, color}, l.line(second, color)}
}

// row returns the line of one file.
func (l layout) row(t *activeFile, now time.Time) liveLine {
	bar, bytes := "", ""
	if l.bar > 0 {
		bar = picture(t, l.bar-2)
	}
	if l.bytes > 0 {
		bytes = readable.Fit(t.bytesText(), l.bytes)
	}
	state, color := t.state(now, l.brief())
	return l.line(join(" ", readable.Fit(readable.ShortenPath(t.name, l.name), l.name), bar,
		readable.FitRight(percentText(t.highest, t.size), percentWidth), bytes, readable.Shorten(state, l.state)), color)
}

// join returns the texts that are not empty, with sep between them.
func join(sep string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), sep)
}

// picture returns a bar: '=' stands for committed bytes, '-' for bytes that have arrived.
func picture(t *activeFile, width int) string {
	part := func(n int64) int { return min(int(float64(n)/float64(max(t.size, 1))*float64(width)), width) }
	committed, sent := 0, 0
	if t.size > 0 {
		committed = part(t.committed)
		sent = max(part(t.highest), committed)
	}
	return "[" + strings.Repeat("=", committed) + strings.Repeat("-", sent-committed) + strings.Repeat(" ", width-sent) + "]"
}

// percentText returns which part of size is done, or "" if size is not known.
func percentText(done, size int64) string {
	switch {
	case size < 0:
		return ""
	case done >= size:
		return "100%"
	}
	return fmt.Sprintf("%d%%", int(float64(done)/float64(size)*100))
}

// bytesText returns how many bytes of a file are sent, or compared.
func (t *activeFile) bytesText() string {
	if t.last.ToCompare > 0 {
		return amountText(Comparing, t.last.Compared, 0, t.last.ToCompare)
	}
	return amountText(t.work, t.highest, t.committed, t.size)
}

// state describes an active file: its rate and the time left, or the reason for its
// wait. brief is the form for narrowState columns.
func (t *activeFile) state(now time.Time, brief bool) (text, color string) {
	form := func(short, long string) string {
		if brief {
			return short
		}
		return long
	}
	rate := t.meter.rate(now)
	speed := readable.FitRight(readable.Rate(rate), rateWidth)
	switch {
	case t.lost > 0 && now.Before(t.lostUntil):
		lost := readable.Bytes(t.lost)
		return form("lost "+lost, "the service lost "+lost), yellow
	case t.last.Kind == upload.Settling:
		return form("disk", "waiting for the file's disk"), ""
	case t.last.ToCompare > 0:
		part := percentText(t.last.Compared, t.last.ToCompare)
		return form("compare "+part, speed+"  comparing "+part), ""
	case !t.until.IsZero():
		return t.waitText(now, brief), yellow
	case t.replyIsLate(now):
		return form("no reply yet", "waiting for the reply"), ""
	}
	text = form(speed, speed+"  "+readable.Fit(etaText(t.size-t.sent, rate), etaWidth))
	if t.sent < t.highest && !brief {
		text += " resending"
	}
	return text, ""
}

// waitText describes the end and the cause of a wait.
func (t *activeFile) waitText(now time.Time, brief bool) string {
	left := max(math.Ceil(t.until.Sub(now).Seconds()), 0)
	end := fmt.Sprintf("%.0f s", left)
	c := causeOf(t.last)
	switch {
	case t.last.Kind == upload.LeaseHeld && brief:
		return "lease " + end
	case t.last.Kind == upload.LeaseHeld:
		return "another process works on it, or died: its lease ends in " + end
	case brief && left > 0:
		return end + " " + c.short
	case brief:
		return "again: " + c.short
	case t.last.Blocked:
		return "another file probes: " + c.text
	case left > 0:
		return fmt.Sprintf("retry %d in %s: %s", t.last.Retry, end, c.text)
	}
	return fmt.Sprintf("retry %d: %s", t.last.Retry, c.text)
}

// totals describe the whole run.
type totals struct {
	files, failed   string
	sent, committed int64 // or compared
	rate, eta       string
}

func (d *Display) totals(now time.Time) totals {
	finished, rate := d.run.Finished(), d.meter.rate(now)
	t := totals{files: "file " + countText(d.ended.files+finished), sent: d.sum.sent, committed: d.sum.committed, rate: readable.Rate(rate)}
	if d.files >= 0 {
		// A file that cannot be read is not counted before it is reached.
		t.files += " of " + countText(max(int(d.files), d.ended.files+finished+len(d.active)))
	}
	switch {
	case d.ended.failed > 0:
		t.failed = countText(d.ended.failed) + " failed"
	case d.ended.differ == 1:
		t.failed = "1 differs"
	case d.ended.differ > 0:
		t.failed = countText(d.ended.differ) + " differ"
	}
	if d.run.Work == Comparing {
		t.sent = d.sum.done // a file that need not be read is compared, too
	}
	if d.size >= 0 && finished == 0 {
		t.eta = etaText(d.size-d.sum.done, rate)
	}
	return t
}

// totalLines returns the line of the whole run, or two if the terminal is narrow.
func (d *Display) totalLines(l layout, now time.Time) []liveLine {
	t, color := d.totals(now), ""
	if t.failed != "" {
		color = red
	}
	share := func(width int) string {
		return fmt.Sprintf("%-*s", width, shareText(d.run.Work, t.sent, d.size, width))
	}
	speed := readable.FitRight(t.rate, rateWidth)
	switch {
	case l.bytes > 0:
		amount := amountText(d.run.Work, t.sent, t.committed, d.size)
		return []liveLine{l.line(fmt.Sprintf("%-26s  %-13s  %-*s  %s  %s", t.files, t.failed, bytesWidth, amount, speed, t.eta), color)}
	case l.bar > 0:
		return []liveLine{l.line(fmt.Sprintf("%-21s %s %s %s %s", t.files, readable.Fit(t.failed, 11), share(shareWidth), speed, t.eta), color)}
	}
	second := fmt.Sprintf("%s %s %s", share(narrowShare), speed, strings.TrimPrefix(t.eta, "ETA "))
	return []liveLine{l.line(fmt.Sprintf("%-21s %s", t.files, t.failed), color), l.line(second, color)}
}

// plainLine returns the state as a line of a log: that of the only file, or the totals with the waits.
func (d *Display) plainLine(now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.began {
		return ""
	}
	if t := d.only(); t != nil {
		parts := ""
		if p := t.last.Parts; p != nil && d.run.Parts {
			parts = fmt.Sprintf("parts %d/%d, %s", p.Done, p.Count, readable.Plural(p.Connections, "connection", "connections"))
		}
		state, _ := t.state(now, false)
		return join("  ", t.name, percentText(t.highest, t.size), parts, t.bytesText(), strings.Join(strings.Fields(state), " "))
	}
	listing, why, waiting := "", "", 0
	if l := d.waitingListing(now); l != nil {
		listing = l.name + ": " + l.waitText(now, false)
	}
	for _, t := range d.active {
		if !t.until.IsZero() {
			waiting++
			why = fmt.Sprintf("%d waiting: %s", waiting, causeOf(t.last).text)
		}
	}
	t := d.totals(now)
	return join("  ", join(", ", t.files, amountText(d.run.Work, t.sent, t.committed, d.size), t.failed, listing, why), t.rate, t.eta)
}

// amountText returns how much of size bytes is sent and committed, "3.412 GiB sent, 3.375 GiB committed
// of 10 GiB", or read: "3.412 GiB read of 10 GiB". size is negative if it is not known.
func amountText(w Work, done, committed, size int64) string {
	text := readable.Precise(done) + " sent, " + readable.Precise(committed) + " committed"
	if w == Comparing {
		text = readable.Precise(done) + " read"
	}
	if size >= 0 {
		text += " of " + readable.Bytes(size)
	}
	return text
}

// Widths of shareText, unless it has two units.
const (
	shareWidth  = 21 // "sent 0.812 of 4.0 GiB"
	narrowShare = 19 // "sent 0.8 of 4.0 GiB"
)

// shareDigits are the digits after the point that a number in a unit has at most: it changes every few
// seconds even if the link is slow.
var shareDigits = map[string]int{"KiB": 1, "MiB": 1, "GiB": 3, "TiB": 5, "PiB": 6, "EiB": 6}

// shareText returns how much of size bytes is sent, or read: "sent 3.412 of 10 GiB", with as many digits
// as width columns allow. At the beginning, it has two units: "sent 55 MiB of 10 GiB".
func shareText(w Work, done, size int64, width int) string {
	verb := "sent "
	if w == Comparing {
		verb = "read "
	}
	if size < 0 {
		return verb + readable.Precise(done)
	}
	name, unit := readable.Unit(size + size/40) // from 1000 on the next one, which takes less space
	number := func(n int64, digits int, up float64) string {
		scale := math.Pow10(digits)
		return fmt.Sprintf("%.*f", digits, math.Floor(float64(n)/float64(unit)*scale+up)/scale)
	}
	fewest := func(n int64) int {
		if unit > 1 && n < 10*unit {
			return 1
		}
		return 0
	}
	whole := number(size, fewest(size), 0.5)
	of := " of " + whole + " " + name
	switch {
	case done >= size:
		return verb + whole + of
	case done > 0 && done < unit/10:
		return verb + readable.Bytes(done) + of
	}
	for digits := shareDigits[name]; ; digits-- {
		text := verb + number(done, digits, 0) + of
		if len(text) <= width || digits <= fewest(done) {
			return text
		}
	}
}

// etaText returns the time for the bytes left, or "" if it is unknown.
func etaText(left int64, rate float64) string {
	if left <= 0 || rate <= 0 {
		return ""
	}
	seconds := math.Ceil(float64(left) / rate)
	n := int(seconds)
	switch {
	case seconds >= 100*3600:
		return "ETA > 4 days"
	case n < 3600:
		return fmt.Sprintf("ETA %d:%02d", n/60, n%60)
	}
	return fmt.Sprintf("ETA %d:%02d:%02d", n/3600, n/60%60, n%60)
}

// countText returns n in at most 6 columns.
func countText(n int) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.4gM", float64(n)/1e6)
}
