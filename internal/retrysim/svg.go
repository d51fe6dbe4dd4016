package retrysim

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Sizes of the chart, in pixels.
const (
	width, left, right     = 800, 70, 14
	head, panel, gap, foot = 64, 84, 30, 34
	plot                   = width - left - right
)

// WriteSVG writes a chart of load over time, with one panel per result. All
// panels have the same axes. Served requests are at the bottom, refused ones on
// top. The y axis ends at the highest load with the server up. The load during
// the outage may be higher and is clipped.
func WriteSVG(w io.Writer, s Scenario, results []Result) error {
	text := caption{
		title:  fmt.Sprintf("%d clients, %d requests/s, outage of %v", s.Clients, s.Capacity, s.Outage),
		legend: "dashed: capacity; grey: outage; worst second: with the server up",
		top:    int64(s.Capacity),
		result: func(r Result) string {
			end := fmt.Sprintf("%d never served", r.Failed)
			if r.All >= 0 {
				end = "all served after " + r.All.String()
			}
			return fmt.Sprintf("%d requests, %d wasted, worst second %d, %s", r.Requests, r.Wasted, r.Peak, end)
		},
	}
	for _, r := range results {
		text.top = max(text.top, r.Peak)
	}
	return writeChart(w, s, results, text)
}

// caption is the text of a chart, and the end of its y axis in requests per second.
type caption struct {
	title, legend string
	result        func(Result) string // the title of a panel, after the name of the policy
	top           int64
}

func writeChart(w io.Writer, s Scenario, results []Result, text caption) error {
	c := chart{caption: text, seconds: span(s, results)}
	height := head + len(results)*(panel+gap) - gap + foot
	c.line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height, width, height)
	c.line(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	c.line(`<text x="%d" y="20" font-size="14" font-weight="bold">%s</text>`, left, text.title)
	c.line(`<text x="%d" y="38" fill="#555">Requests per second: <tspan fill="%s">served</tspan> and <tspan fill="%s">refused</tspan>; %s</text>`, left, served, refused, text.legend)
	for i, r := range results {
		c.panel(head+i*(panel+gap), s, r)
	}
	c.axis(height - foot)
	c.line(`</svg>`)
	_, err := io.WriteString(w, c.b.String())
	return err
}

const served, refused = "#1a73e8", "#d93025"

// span returns how many seconds the chart shows. It is limited, so that the
// panel of the fastest policy stays readable.
func span(s Scenario, results []Result) int {
	longest, shortest := 1, 0
	for _, r := range results {
		longest = max(longest, len(r.Load))
		if r.All >= 0 && (shortest == 0 || len(r.Load) < shortest) {
			shortest = len(r.Load)
		}
	}
	if shortest > 0 {
		longest = min(longest, 3*shortest)
	}
	outage := int((s.start + s.Outage) / time.Second)
	return min(max(longest, outage+10), 2*outage+3600)
}

type chart struct {
	caption
	b       strings.Builder
	seconds int // on the x axis
}

func (c *chart) line(format string, args ...any) {
	fmt.Fprintf(&c.b, format, args...)
	c.b.WriteByte('\n')
}

// x returns the x coordinate of a second. y returns the y coordinate of a load
// in a panel with the lower edge base.
func (c *chart) x(second float64) float64 { return left + second*plot/float64(c.seconds) }

func (c *chart) y(base int, load float64) float64 {
	return float64(base) - min(load/float64(c.top), 1)*panel
}

func (c *chart) panel(y int, s Scenario, r Result) {
	base := y + panel
	c.line(`<text x="%d" y="%d"><tspan font-weight="bold">%s</tspan>: %s</text>`, left, y-6, r.Policy, c.result(r))
	from := c.x(s.start.Seconds())
	c.line(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#eee"/>`, from, y, c.x((s.start+s.Outage).Seconds())-from, panel)
	c.area(base, refused, r.Load, func(l Second) int64 { return l.Requests })
	c.area(base, served, r.Load, func(l Second) int64 { return l.Served })
	c.line(`<path d="%s" stroke="#555" stroke-dasharray="4 3"/>`, c.capacity(base, r.Load))
	c.line(`<path d="M%d %dV%dH%d" fill="none" stroke="#000"/>`, left, y, base, width-right)
	c.line(`<text x="%d" y="%d" text-anchor="end">%d</text>`, left-6, y+10, c.top)
	c.line(`<text x="%d" y="%d" text-anchor="end">0</text>`, left-6, base)
}

// area draws bars upward from base: one for each second, or one for each pixel
// with the maximum of its seconds.
func (c *chart) area(base int, color string, load []Second, value func(Second) int64) {
	step := (c.seconds + plot - 1) / plot
	fmt.Fprintf(&c.b, `<path fill="%s" d="M%d %d`, color, left, base)
	before := int64(0)
	for second := 0; second < c.seconds; second += step {
		var most int64
		for i := second; i < min(second+step, len(load)); i++ {
			most = max(most, value(load[i]))
		}
		if most != before {
			fmt.Fprintf(&c.b, "H%.1fV%.1f", c.x(float64(second)), c.y(base, float64(most)))
			before = most
		}
	}
	c.line(`H%dV%dZ"/>`, width-right, base)
}

// capacity returns a path with a line at each capacity. The last one continues.
func (c *chart) capacity(base int, load []Second) string {
	var path string
	before := int64(0)
	for i, second := range load {
		if second.Capacity == before {
			continue
		}
		if i > 0 {
			path += fmt.Sprintf("H%.0f", c.x(float64(i)))
		}
		path += fmt.Sprintf("M%.0f %.1f", c.x(float64(i)), c.y(base, float64(second.Capacity)))
		before = second.Capacity
	}
	return fmt.Sprintf("%sH%d", path, width-right)
}

// axis draws the labels of the x axis, at most a dozen.
func (c *chart) axis(y int) {
	step := 1
	for _, next := range []int{2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200} {
		if c.seconds/step <= 12 {
			break
		}
		step = next
	}
	for second := 0; second <= c.seconds; second += step {
		c.line(`<text x="%.1f" y="%d" text-anchor="middle">%d s</text>`, c.x(float64(second)), y+16, second)
	}
}
