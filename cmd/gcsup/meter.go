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

// meter knows how far one upload is, how fast it goes and what it waits for.
type meter struct {
	name            string
	size            int64 // -1 while it is not known
	sent, committed int64
	compared        int64     // of the source, which is read to be compared
	toCompare       int64     // 0 while it is not
	samples         []sample  // of the last rateOver, oldest first
	settling        bool      // it is not read yet, see upload.Settling
	until           time.Time // it waits; zero if not
	why             string
}

type sample struct {
	at   time.Time
	done int64 // sent, or compared
}

// rateOver is what the rate is the mean of: long enough to be steady, short
// enough to follow a network that changes.
const rateOver = 10 * time.Second

func newMeter(source string) *meter {
	name := printable(source)
	if source == stdinName {
		name = "standard input"
	}
	return &meter{name: name, size: -1}
}

// note takes an event in.
func (m *meter) note(e upload.Event, now time.Time) {
	m.size, m.committed = e.Size, e.Committed
	if e.Sent < m.sent || e.Kind == upload.Resumed || e.Compared < m.compared || e.ToCompare != m.toCompare {
		m.samples = nil // it goes back, begins in the middle, or does something else: no speed
	}
	m.sent, m.compared, m.toCompare = e.Sent, e.Compared, e.ToCompare
	m.until, m.settling = time.Time{}, e.Kind == upload.Settling
	switch e.Kind {
	case upload.Waiting:
		m.until, m.samples = now.Add(e.Delay), nil
		m.why = fmt.Sprintf("%s, retry %d", printable(e.Cause), e.Retry)
	case upload.Progress, upload.Resumed, upload.Started:
		m.samples = append(m.samples, sample{now, e.Sent})
	case upload.Comparing:
		m.samples = append(m.samples, sample{now, e.Compared})
	}
	for len(m.samples) > 2 && now.Sub(m.samples[0].at) > rateOver {
		m.samples = m.samples[1:]
	}
}

// rate is in bytes per second, 0 while it is not known.
func (m *meter) rate(now time.Time) float64 {
	if len(m.samples) < 2 {
		return 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	if now.Sub(first.at) < time.Second {
		return 0 // too short to tell
	}
	return float64(last.done-first.done) / max(now.Sub(first.at).Seconds(), 0.1)
}

// text says it all, without the name.
func (m *meter) text(now time.Time) string {
	if m.toCompare > 0 {
		return m.comparison(now)
	}
	if m.settling {
		return settlingText
	}
	var b strings.Builder
	if m.size > 0 {
		fmt.Fprintf(&b, "%d%%  ", m.sent*100/m.size)
	}
	fmt.Fprintf(&b, "%s sent, %s durable", bytesText(m.sent), bytesText(m.committed))
	if m.size >= 0 {
		fmt.Fprintf(&b, " of %s", bytesText(m.size))
	}
	if !m.until.IsZero() {
		if left := m.until.Sub(now); left > 0 {
			fmt.Fprintf(&b, "  waiting: %s, %.0f s left", m.why, math.Ceil(left.Seconds()))
		} else {
			fmt.Fprintf(&b, "  trying again: %s", m.why)
		}
		return b.String()
	}
	b.WriteString(m.speed(now, m.size-m.sent))
	return b.String()
}

const settlingText = "waiting for the file's latest changes to reach its disk"

// comparison says how far the source was read to be compared.
func (m *meter) comparison(now time.Time) string {
	return fmt.Sprintf("comparing with what was sent: %s of %s%s", bytesText(m.compared), bytesText(m.toCompare), m.speed(now, m.toCompare-m.compared))
}

// speed is the rate, and the time for what is left, as far as they are known.
func (m *meter) speed(now time.Time, left int64) string {
	rate := m.rate(now)
	if rate <= 0 {
		return ""
	}
	text := fmt.Sprintf("  %s/s", bytesText(int64(rate)))
	if left > 0 {
		text += fmt.Sprintf("  ETA %s", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	return text
}

// shortText is text for a narrow terminal: sent/durable/size.
func (m *meter) shortText(now time.Time) string {
	if m.settling {
		return "waiting for the disk"
	}
	if m.toCompare > 0 {
		return fmt.Sprintf("comparing %s/%s%s", bytesText(m.compared), bytesText(m.toCompare), m.speed(now, m.toCompare-m.compared))
	}
	text := fmt.Sprintf("%s/%s", bytesText(m.sent), bytesText(m.committed))
	if m.size >= 0 {
		text += "/" + bytesText(m.size)
	}
	if !m.until.IsZero() {
		return fmt.Sprintf("%s  %s, %.0f s left", text, m.why, math.Ceil(max(m.until.Sub(now).Seconds(), 0)))
	}
	return text + m.speed(now, m.size-m.sent)
}

// briefText is for a terminal that has no room for a name.
func (m *meter) briefText(now time.Time) string {
	if m.settling {
		return "disk"
	}
	if m.toCompare > 0 {
		return fmt.Sprintf("comparing %d%%", m.compared*100/m.toCompare)
	}
	text := bytesText(m.sent)
	if m.size > 0 {
		text = fmt.Sprintf("%d%%", m.sent*100/m.size)
	}
	if !m.until.IsZero() {
		return fmt.Sprintf("%s %.0fs: %s", text, math.Ceil(max(m.until.Sub(now).Seconds(), 0)), m.why)
	}
	if rate := m.rate(now); rate > 0 {
		text += fmt.Sprintf(" %s/s", bytesText(int64(rate)))
	}
	return text
}

// plainLine is for a log.
func (m *meter) plainLine(now time.Time) string { return m.name + "  " + m.text(now) }

// bar is for a terminal of that many columns. In its picture '=' is durable
// and '-' is sent.
func (m *meter) bar(now time.Time, columns int) string {
	text := m.text(now)
	// What it waits for and the time left come before the name, and the name
	// before the picture.
	left := columns - 1 - utf8.RuneCountInString(text) - 2
	if left < 8 {
		text = m.shortText(now)
		left = columns - 1 - utf8.RuneCountInString(text) - 2
	}
	if left < 4 {
		return shorten(m.briefText(now), columns-1)
	}
	name := shorten(m.name, min(left, max(columns/4, 8)))
	room := min(left-utf8.RuneCountInString(name)-len("  []"), max(columns/4, 8), 30)
	picture := "  "
	if m.size > 0 && room >= 8 {
		durable := int(m.committed * int64(room) / m.size)
		sent := max(int(m.sent*int64(room)/m.size), durable)
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
