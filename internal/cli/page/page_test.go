package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/internal/require"
	"gcsup/upload"
)

const hostile = `<script>document.title="owned"</script>&.bin`

// examplePage writes the report of a run with retries, a restart, a failed file and
// more requests than a report lists.
func examplePage(t *testing.T) string {
	t.Helper()
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	p := New(start)
	totals := &result.Totals{Start: start}
	log := slog.New(p)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	event := func(s float64, e upload.Event) {
		e.Size = 100 * 1 << 20
		p.Note(1, "disk.img", e, at(s))
	}
	event(0, upload.Event{Kind: upload.Started})
	for i := range 20 {
		event(1+float64(i)/2, upload.Event{Kind: upload.Progress, Sent: int64(i) << 20, Committed: int64(i/8) << 23})
	}
	event(12, upload.Event{Kind: upload.Waiting, Sent: 20 << 20, Committed: 16 << 20, Delay: 4 * time.Second, Retry: 1, Cause: "503"})
	event(17, upload.Event{Kind: upload.Restarted, Cause: "410 Gone"})
	event(20, upload.Event{Kind: upload.Progress, Sent: 90 << 20, Committed: 80 << 20})
	for i := range 500 {
		r := slog.NewRecord(at(20+float64(i)/100), slog.LevelDebug, "put", 0)
		r.AddAttrs(slog.String("source", "disk.img"), slog.Int("status", 308), slog.Any("err", error(nil)), slog.Int64("sent", 1<<20), slog.Duration("took", time.Duration(i)*time.Millisecond))
		require.NoError(t, log.Handler().Handle(context.Background(), r))
	}
	log.Debug("query", "part", 2, "status", 0, "err", errors.New("connection reset"), "took", time.Second, "next", "wait, query: connection reset")
	log.Info("upload ended")
	done := &upload.Result{Size: 100 << 20, Elapsed: 25 * time.Second, Retries: 1, BytesSent: 120 << 20, BytesResent: 20 << 20, Requests: 500}
	totals.Add(result.OK, done, nil)
	p.End(1, result.File{Source: "disk.img", Destination: "gs://demo/disk.img"}, result.OK, done, nil, at(25))
	failed := &upload.Result{Size: 7, Elapsed: time.Second}
	totals.Add(result.Failed, failed, errors.New("permission denied"))
	p.End(2, result.File{Source: hostile, Destination: "gs://demo/" + hostile}, result.Failed, failed, errors.New("permission denied"), at(25))
	path := filepath.Join(t.TempDir(), "report.html")
	page := p.Render(About{Command: "gcsup cp " + hostile, Totals: totals, Elapsed: 25 * time.Second, Code: exit.Permission})
	require.NoError(t, os.WriteFile(path, page, 0o600))
	return path
}

// chromium runs the browser and returns its output.
func chromium(t *testing.T, args ...string) []byte {
	t.Helper()
	if os.Getenv("GCSUP_TEST_CHROMIUM") == "" {
		t.Skip("takes a second for each page: GCSUP_TEST_CHROMIUM=1 runs it, if chromium is in PATH")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("GCSUP_TEST_CHROMIUM is set, and there is no chromium in PATH: on Debian, apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	profile := t.TempDir()
	cmd := exec.CommandContext(ctx, path, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + profile}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+profile)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, stderr.Bytes())
	}
	return out
}

// TestReportInBrowser checks how a browser shows a report.
func TestReportInBrowser(t *testing.T) {
	path := examplePage(t)
	doc, err := html.Parse(bytes.NewReader(chromium(t, "--dump-dom", "file://"+path)))
	require.NoError(t, err)
	count, texts := map[string]int{}, map[string]string{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				texts[a.Val] = text(n)
				for row := range n.Descendants() {
					if row.Data == "tr" && row.Parent.Data == "tbody" {
						count["#"+a.Val]++
					}
				}
			case "class":
				count["."+a.Val]++
			case "src", "href", "onload", "onerror":
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "title" && n.Parent.Data == "head" {
			texts["title"] = text(n)
		}
	}
	if want := "gcsup: 1 of 2 files failed"; texts["title"] != want {
		t.Errorf("title %q, want %q", texts["title"], want)
	}
	if count["script"]+count["link"]+count["img"] > 0 {
		t.Errorf("elements: %v; the page must load and run nothing", count)
	}
	for name, want := range map[string]int{
		"#failed": 1, "#slowest": 2, "#events": 2, "#requests": 2, "#failed-requests": 1, "#slowest-requests": maxRequests, "#latest-requests": maxRequests,
		".wait": 18, ".retry": 2, ".loss": 2, ".committed": 1,
	} {
		if count[name] != want {
			t.Errorf("%d of %s, want %d", count[name], name, want)
		}
	}
	if count[".sent"] < 10 {
		t.Errorf("the throughput has %d bars, want at least 10", count[".sent"])
	}
	for id, want := range map[string]string{
		"slowest-requests": "putdisk.img308", "failed": hostile + " → gs://demo/" + hostile, "events": "410 Gone", "requests": "put308500500 MiB", "failed-requests": "part 2: queryno replywait, query: connection reset", "charts": "80 MiB",
	} {
		if id == "charts" {
			want = "100 MiB" // the committed bytes at the end
		}
		if !strings.Contains(texts[id], want) {
			t.Errorf("#%s shows %q, want %q in it", id, texts[id], want)
		}
	}
}

// TestReportColors compares the background of a report on light and dark screens.
func TestReportColors(t *testing.T) {
	path := examplePage(t)
	for scheme, want := range map[int]color.RGBA{0: {0x1f, 0x1f, 0x23, 0xff}, 1: {0xff, 0xff, 0xff, 0xff}} {
		shot := filepath.Join(t.TempDir(), "page.png")
		chromium(t, fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), "--window-size=800,600", "--screenshot="+shot, "file://"+path)
		data, err := os.ReadFile(shot)
		require.NoError(t, err)
		img, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		if got := color.RGBAModel.Convert(img.At(2, 2)); got != want {
			t.Errorf("color scheme %d: background %v, want %v", scheme, got, want)
		}
	}
}

func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// TestReportIsBounded checks that the report of a long run is not larger than that
// of a shorter one.
func TestReportIsBounded(t *testing.T) {
	sizes := map[int]int{}
	for _, n := range []int{3_000, 100_000} {
		start := time.Unix(1e9, 0)
		p := New(start)
		for i := range n {
			now := start.Add(time.Duration(i) * time.Second)
			p.Note(i, "a", upload.Event{Kind: upload.Started}, now)
			p.Note(i, "a", upload.Event{Kind: upload.Waiting, Cause: "503", Delay: time.Second}, now)
			p.End(i, result.File{Source: "a"}, result.Failed, &upload.Result{}, errors.New("x"), now)
			r := slog.NewRecord(now, slog.LevelDebug, "put", 0)
			r.AddAttrs(slog.Int("status", 503))
			_ = p.Handle(t.Context(), r)
		}
		sizes[n] = len(p.Render(About{Totals: &result.Totals{}, Elapsed: time.Duration(n) * time.Second}))
		if len(p.timeline.buckets) > maxBuckets || len(p.timeline.active) > 0 {
			t.Errorf("%d files: %d buckets, %d active", n, len(p.timeline.buckets), len(p.timeline.active))
		}
	}
	if sizes[100_000] > sizes[3_000]*3/2 {
		t.Errorf("sizes %v", sizes)
	}
}

// TestNoSpikeAtTheEnd checks that the rate of a steady upload does not rise in the last interval
// of the chart, however short its last bucket is.
func TestNoSpikeAtTheEnd(t *testing.T) {
	const every = 200 * time.Millisecond // between two reports of progress
	for end := 100 * time.Millisecond; end < 4*time.Second; end += 70 * time.Millisecond {
		line := timeline{length: smallestBucket, active: map[int]result.Progress{}}
		was := result.Progress{}
		move := func(at time.Duration) {
			is := result.Progress{Sent: int64(at.Seconds() * 1e6)}
			line.move(at, 1, was, is)
			was = is
		}
		for at := every; at < end; at += every {
			move(at)
		}
		move(end)
		all := line.intervals(end)
		last := all[len(all)-1]
		if rate := last.rate(); rate > 1.5e6 || last.to != end {
			t.Errorf("a run of %v: %.1f MB/s in the last interval, from %v to %v, want about 1 MB/s", end, rate/1e6, last.from, last.to)
		}
		sent := int64(0)
		for _, in := range all {
			sent += in.sent
		}
		if sent != was.Sent {
			t.Errorf("a run of %v: the intervals have %d bytes, want %d", end, sent, was.Sent)
		}
	}
}

// TestWaitsAtTheSameTimeCountOnce checks that a run does not wait longer than it lasts.
func TestWaitsAtTheSameTimeCountOnce(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	p := New(start)
	wait := func(id int, from, delay time.Duration) {
		p.Note(id, "a", upload.Event{Kind: upload.Waiting, Delay: delay}, start.Add(from))
	}
	for id := range 30 {
		wait(id, time.Second, 10*time.Second)
	}
	wait(1, 5*time.Second, 2*time.Second)
	wait(2, 8*time.Second, 5*time.Second)
	wait(3, 20*time.Second, 10*time.Second) // interrupted
	page := p.Render(About{Totals: &result.Totals{Waited: 317 * time.Second}, Elapsed: 21 * time.Second})
	if want := "<dt>waited</dt><dd>13s</dd>"; !strings.Contains(string(page), want) {
		t.Errorf("no %s in the page", want)
	}
}
