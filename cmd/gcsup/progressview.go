package main

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"gcsup/upload"
)

// progressView renders the offsets, the rate and the wait of one upload.
type progressView struct {
	name            string
	size            int64 // -1 if unknown
	sent, committed int64
	compared        int64     // offset up to which the source was compared
	toCompare       int64     // offset up to which it will be; 0 if it is not compared
	samples         []sample  // of the last rateWindow, oldest first
	settling        bool      // see upload.Settling
	until           time.Time // end of the wait; zero if the upload does not wait
	why             string    // cause of the wait
}

type sample struct {
	at   time.Time
	done int64 // bytes sent or compared
}

// rateWindow is the time over which the rate is averaged. It is long enough for a
// steady value, and short enough to follow a network that changes.
const rateWindow = 10 * time.Second

func newProgressView(source string) *progressView {
	name := printable(source)
	if source == stdinName {
		name = "standard input"
	}
	return &progressView{name: name, size: -1}
}

// note updates v with an event.
func (v *progressView) note(e upload.Event, now time.Time) {
	v.size, v.committed = e.Size, e.Committed
	if e.Sent < v.sent || e.Kind == upload.Resumed || e.Compared < v.compared || e.ToCompare != v.toCompare {
		v.samples = nil // the offset jumped or the phase changed: the rate is unknown
	}
	v.sent, v.compared, v.toCompare = e.Sent, e.Compared, e.ToCompare
	v.until, v.settling = time.Time{}, e.Kind == upload.Settling
	switch e.Kind {
	case upload.Waiting:
		v.until, v.samples = now.Add(e.Delay), nil
		v.why = fmt.Sprintf("%s, retry %d", printable(e.Cause), e.Retry)
	case upload.Progress, upload.Resumed, upload.Started:
		v.samples = append(v.samples, sample{now, e.Sent})
	case upload.Verifying:
		v.samples = append(v.samples, sample{now, e.Compared})
	}
	for len(v.samples) > 2 && now.Sub(v.samples[0].at) > rateWindow {
		v.samples = v.samples[1:]
	}
}

// ended does nothing: the view of one upload ends with it.
func (v *progressView) ended(*upload.Result, error, time.Time) {}

// rate returns bytes per second, or 0 if the rate is unknown.
func (v *progressView) rate(now time.Time) float64 { return meanRate(v.samples, now) }

// meanRate returns the mean of the samples in bytes per second, or 0 if they are
// too few.
func meanRate(samples []sample, now time.Time) float64 {
	if len(samples) < 2 {
		return 0
	}
	first, last := samples[0], samples[len(samples)-1]
	if now.Sub(first.at) < time.Second {
		return 0 // too short for a mean
	}
	return float64(last.done-first.done) / max(now.Sub(first.at).Seconds(), 0.1)
}

// text returns the complete state without the name.
func (v *progressView) text(now time.Time) string {
	if v.toCompare > 0 {
		return v.comparison(now)
	}
	if v.settling {
		return settlingText
	}
	var b strings.Builder
	if v.size > 0 {
		fmt.Fprintf(&b, "%d%%  ", v.sent*100/v.size)
	}
	fmt.Fprintf(&b, "%s sent, %s durable", bytesText(v.sent), bytesText(v.committed))
	if v.size >= 0 {
		fmt.Fprintf(&b, " of %s", bytesText(v.size))
	}
	if !v.until.IsZero() {
		if left := v.until.Sub(now); left > 0 {
			fmt.Fprintf(&b, "  waiting: %s, %.0f s left", v.why, math.Ceil(left.Seconds()))
		} else {
			fmt.Fprintf(&b, "  retrying: %s", v.why)
		}
		return b.String()
	}
	b.WriteString(v.speed(now, v.size-v.sent))
	return b.String()
}

const settlingText = "waiting for the file's latest changes to reach its disk"

// comparison returns the progress of the comparison with the bytes sent before.
func (v *progressView) comparison(now time.Time) string {
	return fmt.Sprintf("comparing with what was sent: %s of %s%s", bytesText(v.compared), bytesText(v.toCompare), v.speed(now, v.toCompare-v.compared))
}

// speed returns the rate and the time for the bytes left, or "" if the rate is
// unknown.
func (v *progressView) speed(now time.Time, left int64) string {
	rate := v.rate(now)
	if rate <= 0 {
		return ""
	}
	text := fmt.Sprintf("  %s/s", bytesText(int64(rate)))
	if left > 0 {
		text += fmt.Sprintf("  ETA %s", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	return text
}

// shortText returns the state for a narrow terminal: sent/durable/size.
func (v *progressView) shortText(now time.Time) string {
	if v.settling {
		return "waiting for the disk"
	}
	if v.toCompare > 0 {
		return fmt.Sprintf("comparing %s/%s%s", bytesText(v.compared), bytesText(v.toCompare), v.speed(now, v.toCompare-v.compared))
	}
	text := fmt.Sprintf("%s/%s", bytesText(v.sent), bytesText(v.committed))
	if v.size >= 0 {
		text += "/" + bytesText(v.size)
	}
	if !v.until.IsZero() {
		return fmt.Sprintf("%s  %s, %.0f s left", text, v.why, math.Ceil(max(v.until.Sub(now).Seconds(), 0)))
	}
	return text + v.speed(now, v.size-v.sent)
}

// briefText returns the state for a terminal without room for a name.
func (v *progressView) briefText(now time.Time) string {
	if v.settling {
		return "disk"
	}
	if v.toCompare > 0 {
		return fmt.Sprintf("comparing %d%%", v.compared*100/v.toCompare)
	}
	text := bytesText(v.sent)
	if v.size > 0 {
		text = fmt.Sprintf("%d%%", v.sent*100/v.size)
	}
	if !v.until.IsZero() {
		return fmt.Sprintf("%s %.0fs: %s", text, math.Ceil(max(v.until.Sub(now).Seconds(), 0)), v.why)
	}
	if rate := v.rate(now); rate > 0 {
		text += fmt.Sprintf(" %s/s", bytesText(int64(rate)))
	}
	return text
}

// plainLine returns the state as a line of a log.
func (v *progressView) plainLine(now time.Time) string { return v.name + "  " + v.text(now) }

// bar returns the progress bar for a terminal of that many columns. '=' stands
// for durable bytes, '-' for bytes that are sent.
func (v *progressView) bar(now time.Time, columns int) string {
	text := v.text(now)
	// If columns are few, the wait and the time left take precedence over the name,
	// and the name over the picture.
	left := columns - 1 - utf8.RuneCountInString(text) - 2
	if left < 8 {
		text = v.shortText(now)
		left = columns - 1 - utf8.RuneCountInString(text) - 2
	}
	if left < 4 {
		return shorten(v.briefText(now), columns-1)
	}
	name := shorten(v.name, min(left, max(columns/4, 8)))
	room := min(left-utf8.RuneCountInString(name)-len("  []"), max(columns/4, 8), 30)
	picture := "  "
	if v.size > 0 && room >= 8 {
		durable := int(v.committed * int64(room) / v.size)
		sent := max(int(v.sent*int64(room)/v.size), durable)
		picture = "  [" + strings.Repeat("=", durable) + strings.Repeat("-", sent-durable) + strings.Repeat(" ", room-sent) + "]  "
	}
	return shorten(name+picture+text, columns-1)
}

func shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + "…"
}

func bytesText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
