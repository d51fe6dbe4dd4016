package screentest

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"
)

// Frame is what a terminal shows for some time.
type Frame struct {
	Lines [][]Run
	Hold  time.Duration
}

// Theme has the colors of a picture.
type Theme struct {
	Background, Border, Text, Title string
	Colors                          map[string]string // by SGR parameter
}

// Sizes in pixels. A monospace font of 13 px is 7.8 px wide.
const (
	fontSize, advance, lineHeight = 13, 7.8, 19
	margin, titleBar              = 14, 34
)

// SVG returns an animated picture of a window that shows the frames in turn, repeatedly. Its title bar
// has the title.
//
// The frames are below each other, and the window shows one of them. Without animations, as in an image
// viewer or if the reader prefers reduced motion, it is the last one. There is no script, so that the
// picture works as an image of a page.
func SVG(frames []Frame, columns int, title string, theme Theme) []byte {
	rows, total := 0, time.Duration(0)
	for _, f := range frames {
		rows, total = max(rows, len(f.Lines)), total+f.Hold
	}
	screenHeight := rows * lineHeight
	width, height := int(float64(columns)*advance)+2*margin, titleBar+screenHeight+margin

	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="%d">`,
		width, height, width, height, fontSize)
	line(`<title>%s</title>`, html.EscapeString(title))
	line(`<style>`)
	line(`text { white-space: pre }`) // for browsers; others need xml:space
	line(`@media (prefers-reduced-motion: no-preference) { #frames { animation: frames %.2fs step-end infinite } }`, total.Seconds())
	line(`@keyframes frames {`)
	at := time.Duration(0)
	for i, f := range frames {
		line(`%.3f%% { transform: translateY(%dpx) }`, 100*at.Seconds()/total.Seconds(), -i*screenHeight)
		at += f.Hold
	}
	line(`}`)
	line(`</style>`)
	line(`<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`, width-1, height-1, theme.Background, theme.Border)
	for i := range 3 {
		line(`<circle cx="%d" cy="17" r="5" fill="%s"/>`, margin+6+i*17, theme.Border)
	}
	line(`<text x="%d" y="21" text-anchor="middle" fill="%s">%s</text>`, width/2, theme.Title, html.EscapeString(title))
	line(`<svg x="%d" y="%d" width="%d" height="%d" overflow="hidden">`, margin, titleBar, width-2*margin, screenHeight)
	line(`<g id="frames" fill="%s" xml:space="preserve" transform="translate(0 %d)">`, theme.Text, -(len(frames)-1)*screenHeight)
	for i, f := range frames {
		line(`<g>`)
		for y, runs := range f.Lines {
			if text := runsText(runs, theme); text != "" {
				line(`<text y="%d">%s</text>`, i*screenHeight+y*lineHeight+fontSize, text)
			}
		}
		line(`</g>`)
	}
	line(`</g>`)
	line(`</svg>`)
	line(`</svg>`)
	return []byte(b.String())
}

// runsText returns the content of a text element.
func runsText(runs []Run, theme Theme) string {
	var b strings.Builder
	for _, r := range runs {
		if color := theme.Colors[r.Color]; color != "" {
			fmt.Fprintf(&b, `<tspan fill="%s">%s</tspan>`, color, html.EscapeString(r.Text))
		} else {
			b.WriteString(html.EscapeString(r.Text))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// svgText matches the beginning of a frame and a line in a picture.
var svgText = regexp.MustCompile(`(?m)^<g>$|^<text y="\d+">(.*)</text>$`)

// SVGLines returns the lines of each frame of a picture that SVG has made, without empty lines.
func SVGLines(picture []byte) [][]string {
	tag := regexp.MustCompile(`<[^>]*>`)
	var frames [][]string
	for _, m := range svgText.FindAllStringSubmatch(string(picture), -1) {
		if m[0] == "<g>" {
			frames = append(frames, nil)
			continue
		}
		last := &frames[len(frames)-1]
		*last = append(*last, html.UnescapeString(tag.ReplaceAllString(m[1], "")))
	}
	return frames
}
