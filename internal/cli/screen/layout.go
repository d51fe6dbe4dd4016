package screen

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gcsup/internal/cli/readable"
)

// layout holds the widths of the columns of a frame. It depends only on the width
// of the terminal, so that frames do not change their layout.
type layout struct {
	columns int // used columns of the terminal; the last one stays free
	name    int
	bar     int // 0 for none
	percent int
	bytes   int // 0 for none
	state   int
}

// Widths of the terminal at which the layout changes, and of its columns.
const (
	mediumColumns = 70
	wideColumns   = 150
	percentWidth  = 4
	bytesWidth    = 49 // "1023.99 GiB sent, 1023.99 GiB durable of 1023 GiB"
	stateWidth    = 36 // "retry 12 in 32 s: connection refused"
	narrowState   = 12 // "1023 MiB/s", "32 s refused"
)

// Widths of a bar with its brackets. It gets half of the columns that a terminal has more than the
// narrowest one with a bar needs.
const (
	minBar  = 12
	maxBar  = 52
	barFrom = 37 // columns for the name and the bar, from which on the bar grows
)

// split divides columns into a name and a bar.
func split(columns int) (name, bar int) {
	bar = min(max(minBar+(columns-barFrom)/2, minBar), maxBar)
	return max(columns-bar-1, 0), bar
}

// maxColumns is how many columns a frame uses at most. If a wider terminal gets narrower, down
// to 80 columns, it breaks each line into two. More rows could be more than the terminal has:
// those at the top could not be erased any more.
const maxColumns = 159

// usedColumns returns how many columns a frame uses. In a wide terminal some are free: the first step in
// which a window is made narrower then breaks no line.
func usedColumns(columns int) int {
	return min(max(columns-1, 1), max(columns-freeColumns, 79), maxColumns)
}

// freeColumns is how many columns of a wide terminal are free.
const freeColumns = 9

func layoutFor(columns int) layout {
	l := layout{columns: usedColumns(columns), percent: percentWidth}
	switch {
	case columns < mediumColumns:
		l.state = narrowState
	case columns < wideColumns:
		l.state = stateWidth
	default:
		l.bytes, l.state = bytesWidth, stateWidth
	}
	l.name = l.columns
	for _, w := range []int{l.percent, l.bytes, l.state} {
		if w > 0 {
			l.name -= w + 1
		}
	}
	l.name = max(l.name, 0)
	if columns >= mediumColumns {
		l.name, l.bar = split(l.name)
	}
	return l
}

// alone returns the layout of the only file. Its first line has no bytes and no state.
func (l layout) alone() layout {
	name := l.columns - l.percent - 1
	if l.name = name; l.bar > 0 {
		l.name, l.bar = split(name)
	}
	l.bytes, l.state = 0, 0
	return l
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
func (d *Display) frame(now time.Time, columns, height int) []liveLine {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.began && d.run.single() {
		return nil // nothing is known yet, not even whether the file can be read
	}
	l := layoutFor(columns)
	if d.run.single() && len(d.active) == 1 {
		lines := l.only(d.active[0], now)
		return lines[max(len(lines)-max(height, 1), 0):]
	}
	totals := d.totalLines(l, now)
	var lines []liveLine
	listing := d.waitingListing(now)
	if listing != nil {
		lines = append(lines, l.row(listing, now))
	}
	rows := d.visible(min(maxRows, max(height-len(totals)-len(lines)-2, 1)), now)
	for _, t := range rows {
		lines = append(lines, l.row(t, now))
	}
	if more := len(d.active) - len(rows); more > 0 {
		lines = append(lines, liveLine{text: readable.Shorten(d.moreText(more, len(rows)), l.columns)})
	}
	lines = append(lines, totals...)
	// A frame that is higher than the terminal could not be replaced.
	return lines[max(len(lines)-max(height, 1), 0):]
}

// only returns the lines of the only file. A run of one file has no totals: they would repeat its
// line, with another rate.
func (l layout) only(t *activeFile, now time.Time) []liveLine {
	first := l.row(t, now)
	if l.bytes > 0 {
		return []liveLine{first}
	}
	brief := l.state < stateWidth
	state, color := t.state(now, brief)
	width := max(l.columns-l.state-2, shareWidth)
	amount := shareText(t.work, t.highest, t.size, width)
	if t.toCompare > 0 {
		amount = shareText(Comparing, t.compared, t.toCompare, width)
	} else if width >= bytesWidth {
		amount = t.bytesText()
	}
	second := readable.Fit(amount, min(width, bytesWidth)) + "  " + state
	if brief {
		second = readable.Fit(amount, shareWidth) + " " + strings.TrimLeft(state, " ")
		if rate := readable.Rate(t.samples.rate(now)); rate != "" && strings.HasSuffix(state, rate) {
			second += " " + strings.TrimPrefix(etaText(t.size-t.sent, t.samples.rate(now)), "ETA ")
		}
	}
	first = l.alone().row(t, now)
	return []liveLine{{first.text, color}, {readable.Shorten(strings.TrimRight(second, " "), l.columns), color}}
}

// moreText returns how many active files have no row, besides those that have one.
func (d *Display) moreText(more, rows int) string {
	switch {
	case rows > 0:
		return fmt.Sprintf("and %d more", more)
	case d.run.Work == Comparing:
		return readable.Plural(more, "file is being compared", "files are being compared")
	}
	return readable.Plural(more, "file is being sent", "files are being sent")
}

// row returns the line of one file.
func (l layout) row(t *activeFile, now time.Time) liveLine {
	columns := make([]string, 0, 5)
	if l.name > 0 {
		columns = append(columns, readable.Fit(readable.ShortenPath(t.name, l.name), l.name))
	}
	if l.bar > 0 {
		columns = append(columns, picture(t, l.bar-2))
	}
	columns = append(columns, readable.FitRight(percentText(t), l.percent))
	if l.bytes > 0 {
		columns = append(columns, readable.Fit(t.bytesText(), l.bytes))
	}
	var color string
	if l.state > 0 {
		var state string
		state, color = t.state(now, l.state < stateWidth)
		columns = append(columns, readable.Shorten(state, l.state))
	}
	return liveLine{readable.Shorten(strings.TrimRight(strings.Join(columns, " "), " "), l.columns), color}
}

// picture returns a bar: '=' stands for durable bytes, '-' for bytes that have arrived.
func picture(t *activeFile, width int) string {
	if t.size <= 0 {
		return "[" + strings.Repeat(" ", width) + "]"
	}
	part := func(n int64) int { return min(int(float64(n)/float64(t.size)*float64(width)), width) }
	durable := part(t.committed)
	sent := max(part(t.highest), durable)
	return "[" + strings.Repeat("=", durable) + strings.Repeat("-", sent-durable) + strings.Repeat(" ", width-sent) + "]"
}

// percentText returns the percentage that was sent, or "" if the size is not known.
func percentText(t *activeFile) string {
	n, ok := t.percent()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d%%", n)
}

// bytesText returns how many bytes of a file are sent, or compared.
func (t *activeFile) bytesText() string {
	if t.toCompare > 0 {
		return amountText(Comparing, t.compared, 0, t.toCompare)
	}
	return amountText(t.work, t.highest, t.committed, t.size)
}

// state describes an active file: its rate and the time left, or the reason for its
// wait. brief is the form for narrowState columns.
func (t *activeFile) state(now time.Time, brief bool) (text, color string) {
	rate := t.samples.rate(now)
	switch {
	case t.loss.shown(now) && brief:
		return "lost " + readable.Bytes(t.loss.bytes), yellow
	case t.loss.shown(now):
		return "the service lost " + readable.Bytes(t.loss.bytes), yellow
	case t.settling && brief:
		return "disk", ""
	case t.settling:
		return "waiting for the file's disk", ""
	case t.toCompare > 0 && brief:
		return fmt.Sprintf("compare %d%%", min(t.compared*100/t.toCompare, 99)), ""
	case t.toCompare > 0:
		n, _ := percent(t.compared, t.toCompare)
		return fmt.Sprintf("%s  comparing %d%%", readable.FitRight(readable.Rate(rate), rateWidth), n), ""
	case !t.wait.until.IsZero():
		return t.wait.text(now, brief), yellow
	case t.replyIsLate(now) && brief:
		return "no reply yet", ""
	case t.replyIsLate(now):
		return "waiting for the reply", ""
	case brief:
		return readable.FitRight(readable.Rate(rate), rateWidth), ""
	}
	text = readable.FitRight(readable.Rate(rate), rateWidth) + "  " + readable.Fit(etaText(t.size-t.sent, rate), etaWidth)
	if t.sent < t.highest {
		text += " resending"
	}
	return text, ""
}

// text describes the end and the cause of a file's wait.
func (w *fileWait) text(now time.Time, brief bool) string {
	left := math.Ceil(w.until.Sub(now).Seconds())
	switch {
	case w.held && brief:
		return fmt.Sprintf("lease %.0f s", max(left, 0))
	case w.held:
		return fmt.Sprintf("another process works on it, or died: its lease ends in %.0f s", max(left, 0))
	}
	switch {
	case brief && left > 0:
		return fmt.Sprintf("%.0f s %s", left, w.cause.short)
	case brief:
		return "again: " + w.cause.short
	case w.probing:
		return "another file probes: " + w.cause.text
	case left > 0:
		return fmt.Sprintf("retry %d in %.0f s: %s", w.retry, left, w.cause.text)
	}
	return fmt.Sprintf("retry %d: %s", w.retry, w.cause.text)
}

// Widths of a rate and of a time left.
const (
	rateWidth = 10 // "1023 MiB/s"
	etaWidth  = 12 // "ETA 99:59:59"
)

// totalLines returns the line of the whole run, or two if the terminal is narrow.
func (d *Display) totalLines(l layout, now time.Time) []liveLine {
	sent, durable, done := d.totals()
	size := d.totalSize()
	rate, left := d.samples.rate(now), int64(0)
	if size >= 0 && d.finished() == 0 {
		left = size - done
	}
	failed, color := "", ""
	switch {
	case d.ended.failed > 0:
		failed, color = fmt.Sprintf("%s failed", countText(d.ended.failed)), red
	case d.ended.differ > 0:
		failed, color = differText(d.ended.differ), red
	}
	if d.run.Work == Comparing {
		sent = done // a file that need not be read is compared, too
	}
	files := "file " + d.fileText()
	speed := readable.FitRight(readable.Rate(rate), rateWidth)
	var lines []string
	switch {
	case l.bytes > 0:
		lines = []string{strings.Join([]string{readable.Fit(files, 26), readable.Fit(failed, 13), readable.Fit(amountText(d.run.Work, sent, durable, size), bytesWidth), speed, etaText(left, rate)}, "  ")}
	case l.bar > 0:
		share := fmt.Sprintf("%-*s", shareWidth, shareText(d.run.Work, sent, size, shareWidth))
		lines = []string{strings.Join([]string{readable.Fit(files, 21), readable.Fit(failed, 11), share, speed, etaText(left, rate)}, " ")}
	default:
		share := fmt.Sprintf("%-*s", narrowShare, shareText(d.run.Work, sent, size, narrowShare))
		lines = []string{readable.Fit(files, 21) + " " + failed, share + " " + speed + " " + strings.TrimPrefix(etaText(left, rate), "ETA ")}
	}
	var total []liveLine
	for _, text := range lines {
		total = append(total, liveLine{readable.Shorten(strings.TrimRight(text, " "), l.columns), color})
	}
	return total
}

// fileText returns how many files ended, and of how many if that is known.
func (d *Display) fileText() string {
	finished := d.finished()
	text := countText(d.ended.files + finished)
	if d.files >= 0 {
		// A file that cannot be read is not counted before it is reached.
		text += " of " + countText(max(int(d.files), d.ended.files+finished+len(d.active)))
	}
	return text
}

// plainLine returns the state as a line of a log.
func (d *Display) plainLine(now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.began {
		return ""
	}
	if d.run.single() && len(d.active) == 1 {
		t := d.active[0]
		text := t.name + "  "
		if n, ok := t.percent(); ok && t.size > 0 {
			text += fmt.Sprintf("%d%%  ", n)
		}
		if d.run.Parts {
			text += t.partsText()
		}
		state, _ := t.state(now, false)
		return strings.TrimRight(text+t.bytesText()+"  "+strings.Join(strings.Fields(state), " "), " ")
	}
	sent, durable, done := d.totals()
	size := d.totalSize()
	if d.run.Work == Comparing {
		sent = done
	}
	noun := "files"
	if d.files == 1 || d.files < 0 && d.ended.files+d.finished() == 1 {
		noun = "file"
	}
	text := fmt.Sprintf("%s %s, %s", d.fileText(), noun, amountText(d.run.Work, sent, durable, size))
	if d.ended.differ > 0 {
		text += ", " + differText(d.ended.differ)
	}
	if d.ended.failed > 0 {
		text += fmt.Sprintf(", %d failed", d.ended.failed)
	}
	if l := d.waitingListing(now); l != nil {
		wait, _ := l.state(now, false)
		text += ", " + l.name + ": " + wait
	}
	waiting, why := 0, ""
	for _, t := range d.active {
		if !t.wait.until.IsZero() {
			waiting++
			why = t.wait.cause.text
		}
	}
	if waiting > 0 {
		text += fmt.Sprintf(", %d waiting: %s", waiting, why)
	}
	if rate := d.samples.rate(now); rate > 0 {
		text += "  " + readable.Rate(rate)
		if size >= 0 && d.finished() == 0 {
			text += "  " + etaText(size-done, rate)
		}
	}
	return strings.TrimRight(text, " ")
}

// partsText returns how many parts of a file are stored, or "" if it has none.
func (t *activeFile) partsText() string {
	if t.parts == nil {
		return ""
	}
	return fmt.Sprintf("parts %d/%d, %s  ", t.parts.Done, t.parts.Count, readable.Plural(t.parts.Connections, "connection", "connections"))
}

// amountText returns how much of size bytes is sent and durable, "3.412 GiB sent, 3.375 GiB durable
// of 10 GiB", or read: "3.412 GiB read of 10 GiB". size is negative if it is not known.
func amountText(w Work, done, durable, size int64) string {
	text := readable.Precise(done) + " sent, " + readable.Precise(durable) + " durable"
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
	number := func(n int64, digits int, round func(float64) float64) string {
		scale := math.Pow10(digits)
		return fmt.Sprintf("%.*f", digits, round(float64(n)/float64(unit)*scale)/scale)
	}
	fewest := func(n int64) int {
		if unit > 1 && n < 10*unit {
			return 1
		}
		return 0
	}
	whole := number(size, fewest(size), math.Round)
	switch {
	case done >= size:
		return verb + whole + " of " + whole + " " + name
	case done > 0 && done < unit/10:
		return verb + readable.Bytes(done) + " of " + whole + " " + name
	}
	for digits := shareDigits[name]; ; digits-- {
		text := verb + number(done, digits, math.Floor) + " of " + whole + " " + name
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
	if seconds >= 100*3600 {
		return "ETA > 4 days"
	}
	n := int(seconds)
	if n < 3600 {
		return fmt.Sprintf("ETA %d:%02d", n/60, n%60)
	}
	return fmt.Sprintf("ETA %d:%02d:%02d", n/3600, n/60%60, n%60)
}

// differText returns how many files differ, in at most 13 columns.
func differText(n int) string {
	if n == 1 {
		return "1 differs"
	}
	return countText(n) + " differ"
}

// countText returns n in at most 6 columns.
func countText(n int) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.4gM", float64(n)/1e6)
}
