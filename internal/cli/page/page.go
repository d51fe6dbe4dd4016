package page

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
)

// About is the content of a report that its Recorder does not have.
type About struct {
	Command string // the command line
	Version string // of the program
	Totals  *result.Totals
	Elapsed time.Duration
	Code    int // the exit code
}

// CheckWritable returns an error if no file can be created beside path.
func CheckWritable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// createBeside creates a temporary file in the directory of path. Only its owner can read it. The
// error contains path, not the name of the file.
func createBeside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".gcsup-report-*")
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", path, pe.Err)
	}
	return f, err
}

// Write replaces the file at path with the report. If it fails, the file stays
// unchanged.
func (p *Recorder) Write(path string, about About) (err error) {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = p.Render(f, about)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

const style = `
:root { color-scheme: light dark; --bg: #fff; --fg: #202124; --dim: #5f6368; --line: #dadce0; --panel: #f8f9fa;
  --sent: #1a73e8; --durable: #188038; --retry: #b06000; --loss: #c5221f; --wait: #fde293; }
@media (prefers-color-scheme: dark) { :root { --bg: #1f1f23; --fg: #e8eaed; --dim: #9aa0a6; --line: #3c4043; --panel: #28292d;
  --sent: #8ab4f8; --durable: #81c995; --retry: #fcad70; --loss: #f28b82; --wait: #5c4a12; } }
body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; } p.dim, figcaption { color: var(--dim); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .6rem; }
dl div { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .7rem; }
dt { color: var(--dim); font-size: .85rem; } dd { margin: 0; font-size: 1.15rem; }
figure { margin: 0; } svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--dim); } .axis { stroke: var(--line); } .sent { fill: var(--sent); } .durable { fill: none; stroke: var(--durable); stroke-width: 2; }
.retry { stroke: var(--retry); stroke-width: 2; } .loss { stroke: var(--loss); stroke-width: 3; } .wait { fill: var(--wait); }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th, table[id$="-requests"] td:is(:nth-child(1), :nth-child(3)) { white-space: nowrap; } table[id$="-requests"] td:is(:nth-child(2), :nth-child(4)) { min-width: 10rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } tr.failed td:first-child { color: var(--loss); }
`

// Render writes the page.
func (p *Recorder) Render(out io.Writer, about About) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges.mu.Lock()
	defer p.exchanges.mu.Unlock()
	w, t := &writer{}, about.Totals
	w.markup("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")
	w.markup(`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n")
	// The page loads nothing and runs no script, even if a file's name contains HTML.
	w.markup(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">` + "\n")
	w.printf("<title>gcsup: %s</title><style>%s</style></head><body>\n", outcome(t, about.Code), literal(style))
	w.printf("<h1>gcsup: %s</h1>\n<p><code>%s</code></p>\n", outcome(t, about.Code), about.Command)
	w.printf("<p class=\"dim\">%s, version %s</p>\n<dl>\n", p.start.Format("2006-01-02 15:04:05 -07:00"), about.Version)
	for _, s := range [][2]string{
		{"files", fmt.Sprint(t.Files())}, {"uploaded", fmt.Sprint(t.Uploaded)}, {"skipped", fmt.Sprint(t.Skipped + t.Finished)},
		{"failed", fmt.Sprint(t.Failed + t.Interrupted + t.NotTried)}, {"uploaded bytes", readable.Bytes(t.Bytes)}, {"sent bytes", readable.Bytes(t.Sent)},
		{"sent again", readable.Bytes(t.Resent)}, {"requests", fmt.Sprint(p.exchanges.requests)}, {"retries", fmt.Sprint(t.Retries)}, {"waited", readable.Elapsed(p.waits.until(about.Elapsed)).String()},
		{"elapsed", readable.Elapsed(about.Elapsed).String()}, {"average", cmp.Or(readable.Rate(t.Rate(about.Elapsed)), "–")}, {"exit code", fmt.Sprint(about.Code)},
	} {
		w.printf("<div><dt>%s</dt><dd>%s</dd></div>\n", s[0], s[1])
	}
	if d := t.Deletions; d != nil {
		w.printf("<div><dt>objects deleted</dt><dd>%s</dd></div>\n<div><dt>objects not deleted</dt><dd>%s</dd></div>\n", fmt.Sprint(d.Deleted), fmt.Sprint(d.Failed))
	}
	w.markup("</dl>\n")
	p.charts(w, about.Elapsed)
	p.tables(w)
	p.exchanges.tables(w)
	w.markup("</body></html>\n")
	_, err := io.WriteString(out, w.b.String())
	return err
}

func outcome(t *result.Totals, code int) string {
	switch {
	case code == exit.OK:
		return readable.Plural(t.Files(), "file, done", "files, done")
	case t.Interrupted > 0:
		return "interrupted"
	}
	return fmt.Sprintf("%d of %s failed", t.Failed+t.Interrupted+t.NotTried, readable.Plural(t.Files(), "file", "files"))
}
