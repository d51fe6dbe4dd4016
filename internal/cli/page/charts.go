package page

import (
	"time"

	"gcsup/internal/cli/readable"
)

// Sizes of the charts, in units of the drawing.
const (
	chartWidth, chartLeft, chartRight = 960, 80, 10
	chartHeight, chartGap             = 150, 40
	plotWidth                         = chartWidth - chartLeft - chartRight
)

// charts writes the throughput and the durable bytes over time.
func (p *Recorder) charts(w *writer, elapsed time.Duration) {
	n := min(int(elapsed/p.timeline.length)+1, len(p.timeline.buckets))
	buckets := p.timeline.buckets[:n]
	span := max(elapsed, p.timeline.length).Seconds()
	x := func(t float64) float64 { return chartLeft + min(t/span, 1)*plotWidth }
	at := func(i int) float64 { return (time.Duration(i) * p.timeline.length).Seconds() }
	var fastest float64
	var durable int64
	intervals := p.timeline.intervals(elapsed)
	for _, in := range intervals {
		fastest = max(fastest, in.rate())
	}
	for _, b := range buckets {
		durable = max(durable, b.durable)
	}
	w.markup("<section><h2>Throughput and durable bytes</h2>\n<figure>")
	w.printf(`<svg id="charts" viewBox="0 0 %d %d" role="img" aria-label="throughput and durable bytes over time">`+"\n", chartWidth, 2*chartHeight+chartGap+30)
	panels := []struct {
		top   float64
		label string
	}{{10, readable.Rate(fastest)}, {10 + chartHeight + chartGap, readable.Bytes(durable)}}
	for _, panel := range panels {
		for i := 0; i < n; i++ {
			first := i
			for i < n && buckets[i].waits > 0 {
				i++
			}
			if first < i {
				w.printf(`<rect class="wait" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`+"\n", x(at(first)), panel.top, x(at(i))-x(at(first)), chartHeight)
			}
		}
		w.printf(`<line class="axis" x1="%d" x2="%d" y1="%[3]g" y2="%[3]g"/>`+"\n", chartLeft, chartWidth-chartRight, panel.top+chartHeight)
		w.printf(`<text x="%d" y="%g" text-anchor="end">%s</text><text x="%[1]d" y="%[4]g" text-anchor="end">0</text>`+"\n", chartLeft-8, panel.top+10, panel.label, panel.top+chartHeight)
	}
	for _, in := range intervals {
		if in.sent == 0 {
			continue
		}
		from, to := in.from.Seconds(), in.to.Seconds()
		h := in.rate() / fastest * chartHeight
		w.printf(`<rect class="sent" x="%.1f" y="%.1f" width="%.2f" height="%.1f"><title>%s: %s</title></rect>`+"\n",
			x(from), panels[0].top+chartHeight-h, max(x(to)-x(from), 1), h, secondsText(from), readable.Rate(in.rate()))
	}
	if durable > 0 {
		y := func(n int64) float64 {
			return panels[1].top + chartHeight - float64(max(n, 0))/float64(durable)*chartHeight
		}
		w.printf(`<path class="durable" d="M%.1f %.1f`, x(0), y(0))
		for i, b := range buckets {
			if b.seen {
				w.printf("H%.1fV%.1f", x(at(i+1)), y(b.durable))
			}
		}
		w.printf(`H%.1f"/>`+"\n", x(span))
	}
	for i, b := range buckets {
		for _, panel := range panels {
			if b.retries > 0 {
				w.printf(`<line class="retry" x1="%.1[1]f" x2="%.1[1]f" y1="%[2]g" y2="%[3]g"><title>%[4]s: %[5]s</title></line>`+"\n",
					x(at(i)), panel.top+chartHeight-8, panel.top+chartHeight+6, secondsText(at(i)), readable.Plural(b.retries, "retry", "retries"))
			}
			if b.losses > 0 {
				w.printf(`<line class="loss" x1="%.1[1]f" x2="%.1[1]f" y1="%[2]g" y2="%[3]g"><title>%[4]s: started over</title></line>`+"\n",
					x(at(i)), panel.top, panel.top+chartHeight, secondsText(at(i)))
			}
		}
	}
	for i := range 5 {
		t := span * float64(i) / 4
		anchor := []string{"start", "middle", "middle", "middle", "end"}[i]
		w.printf(`<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, x(t), 10+2*chartHeight+chartGap+18, anchor, secondsText(t))
	}
	w.markup("</svg>\n<figcaption>")
	for _, k := range [][2]string{{"sent", "sent per second (above)"}, {"durable", "durable at the service (below)"}, {"retry", "retry"}, {"wait", "wait before a retry"}, {"loss", "started over"}} {
		w.printf(`<span class="key" style="background: var(--%s)"></span>%s &nbsp; `, k[0], k[1])
	}
	w.markup("</figcaption></figure></section>\n")
}
