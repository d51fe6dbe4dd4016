package retrysim

import (
	"fmt"
	"io"
	"time"
)

// WriteWritersSVG writes a chart of the load on the bucket over time, with one panel per result,
// and a line for the files that are complete. All panels have the same axes. The x axis ends with
// the longest simulation, and the y axis at the given number of requests per second.
func WriteWritersSVG(w io.Writer, top int64, results []WritersResult) error {
	c := chart{top: top}
	var most int64
	for _, r := range results {
		c.seconds = max(c.seconds, int(r.Length/time.Second))
		most = max(most, r.Files)
	}
	height := head + len(results)*(panel+gap) - gap + foot
	c.line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height, width, height)
	c.line(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	c.line(`<text x="%d" y="20" font-size="14" font-weight="bold">Small files into a bucket that starts with %d writes/s</text>`, left, rangeCapacity)
	c.line(`<text x="%d" y="38" fill="#555">Requests per second: <tspan fill="%s">accepted</tspan> and <tspan fill="%s">429</tspan>; dashed: capacity; black: complete files, up to %d</text>`, left, served, refused, most)
	for i, r := range results {
		c.writers(head+i*(panel+gap), most, r)
	}
	c.axis(height - foot)
	c.line(`</svg>`)
	_, err := io.WriteString(w, c.b.String())
	return err
}

func (c *chart) writers(y int, most int64, r WritersResult) {
	base := y + panel
	c.line(`<text x="%d" y="%d"><tspan font-weight="bold">%s</tspan>: %d files, %.1f %% refused after the first minute</text>`, left, y-6, r.Name, r.Files, 100*r.RefusedAfter(time.Minute))
	c.area(base, refused, r.Load, func(l Second) int64 { return l.Requests })
	c.area(base, served, r.Load, func(l Second) int64 { return l.Served })
	var capacity int64
	fmt.Fprintf(&c.b, `<path stroke="#555" stroke-dasharray="4 3" fill="none" d="M%d %d`, left, base)
	for second, now := range r.Capacity {
		if now != capacity {
			fmt.Fprintf(&c.b, "H%.1fV%.1f", c.x(float64(second)), c.y(base, float64(now)))
			capacity = now
		}
	}
	c.line(`H%d"/>`, width-right)
	var files int64
	fmt.Fprintf(&c.b, `<path stroke="#000" fill="none" d="M%d %d`, left, base)
	for second, load := range r.Load {
		if files += load.Served; second%10 == 9 {
			fmt.Fprintf(&c.b, "L%.1f %.1f", c.x(float64(second+1)), float64(base)-panel*float64(files)/float64(max(most, 1)))
		}
	}
	c.line(`"/>`)
	c.line(`<path d="M%d %dV%dH%d" fill="none" stroke="#000"/>`, left, y, base, width-right)
	c.line(`<text x="%d" y="%d" text-anchor="end">%d</text>`, left-6, y+10, c.top)
	c.line(`<text x="%d" y="%d" text-anchor="end">0</text>`, left-6, base)
}
