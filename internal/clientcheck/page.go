package clientcheck

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"
)

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; vertical-align: top }
td.n, th.n { text-align: right }
pre { background: #8882; padding: .8rem; overflow-x: auto; font-size: 13px }
.failed { color: #c22 } .passed { color: #282 } .unmet, .disputed { color: #888 }
</style>
`

// Page returns a page with the results of a command: one HTML file, without scripts.
func Page(command string, results []Result) []byte {
	var w bytes.Buffer
	totals := Totals{}
	for _, r := range results {
		totals[r.Verdict.Outcome()]++
	}
	esc := html.EscapeString
	w.WriteString(pageHead)
	fmt.Fprintf(&w, "<title>check-client: %s</title></head><body>\n<h1>%[1]s</h1>\n<p><code>%s</code></p>\n",
		esc(totals.String()), esc(command))
	w.WriteString("<table>\n<tr><th>script<th>outcome<th>what failed<th class=n>requests<th class=n>bytes sent twice" +
		"<th class=n>blind<th class=n>left open<th class=n>time</tr>\n")
	for _, r := range results {
		v, c := r.Verdict, r.Verdict.Cost
		name, outcome := esc(r.Script.Name), v.Outcome()
		if len(v.Failures) > 0 {
			name = fmt.Sprintf(`<a href="#%s">%[1]s</a>`, name)
		}
		fmt.Fprintf(&w, "<tr><td>%s<td class=%s>%[2]s<td>%s", name, outcome, esc(parts(v.Failures)))
		for _, n := range []any{c.Requests, c.Twice, c.Blind, c.Open, c.Elapsed.Round(time.Millisecond)} {
			fmt.Fprintf(&w, "<td class=n>%v", n)
		}
		w.WriteString("</tr>\n")
	}
	w.WriteString("</table>\n")
	for _, r := range results {
		if len(r.Verdict.Failures) > 0 {
			r.section(&w)
		}
	}
	w.WriteString("</body></html>\n")
	return w.Bytes()
}

// parts returns the parts and rules of failures.
func parts(list []Failure) string {
	var texts []string
	for _, f := range list {
		texts = append(texts, string(f.Part)+": "+f.Rule)
	}
	return strings.Join(texts, ", ")
}

// section writes what happened in a script.
func (r Result) section(w *bytes.Buffer) {
	esc := html.EscapeString
	v := r.Verdict
	fmt.Fprintf(w, "<h2 id=\"%s\">%[1]s: <span class=%s>%[2]s</span></h2>\n<p>%s</p>\n<ul>\n",
		esc(r.Script.Name), v.Outcome(), esc(r.Script.Does))
	for _, f := range v.Failures {
		fmt.Fprintf(w, "<li><b>%s: %s</b>, %s", f.Part, esc(f.Rule), esc(f.Text))
		if f.Exchange > 0 {
			fmt.Fprintf(w, " (request %d)", f.Exchange)
		}
		w.WriteString("</li>\n")
	}
	source := esc(r.Script.Source)
	if strings.HasPrefix(source, "https://") && !strings.Contains(source, " ") {
		source = fmt.Sprintf(`<a href="%s">%[1]s</a>`, source)
	}
	fmt.Fprintf(w, "</ul>\n<p>Fact: %s Source: %s</p>\n", esc(r.Script.Fact), source)
	if v.Disputed != "" {
		fmt.Fprintf(w, "<p>It does not count: %s</p>\n", esc(v.Disputed))
	}
	if v.Message != "" {
		fmt.Fprintf(w, "<p>The client %s:</p>\n<pre>%s</pre>\n", v.End, esc(v.Message))
	}
	w.WriteString("<pre>")
	for i, x := range r.Exchanges {
		if i == shownExchanges {
			fmt.Fprintf(w, "... %d more requests\n", len(r.Exchanges)-i)
			break
		}
		fmt.Fprintf(w, "request %d\n%s\n", i+1, esc(x.Transcript()))
	}
	w.WriteString("</pre>\n")
}

// Transcript returns the exchange as the transcripts of package upload show it.
func (x Exchange) Transcript() string {
	var b strings.Builder
	target := x.Path
	if x.Session != 0 && x.Op != "start" {
		target = fmt.Sprintf("(session %d)", x.Session)
	}
	fmt.Fprintf(&b, "> %s %s\n", x.Method, target)
	for _, h := range x.Header {
		fmt.Fprintf(&b, "> %s\n", h)
	}
	if x.Length >= 0 {
		fmt.Fprintf(&b, "> Content-Length: %d\n", x.Length)
	}
	if x.Length < 0 || x.Received != x.Length {
		fmt.Fprintf(&b, "(%d bytes were read)\n", x.Received)
	}
	if x.Fault != "" {
		fmt.Fprintf(&b, "(fault: %s)\n", x.Fault)
	}
	if x.Status == 0 {
		b.WriteString("< no reply\n")
		return b.String()
	}
	fmt.Fprintf(&b, "< %d\n", x.Status)
	if x.Session != 0 && x.Op == "start" {
		fmt.Fprintf(&b, "< Location: (session %d)\n", x.Session)
	}
	for _, h := range x.Reply {
		fmt.Fprintf(&b, "< %s\n", h)
	}
	if text := strings.TrimSpace(x.Text); text != "" && x.Status >= 300 {
		fmt.Fprintf(&b, "< %s\n", strings.ReplaceAll(text, "\n", "\n< "))
	}
	return b.String()
}
