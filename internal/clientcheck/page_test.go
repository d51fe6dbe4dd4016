package clientcheck

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"gcsup/internal/require"
)

// TestPage checks that a page has the failed script with its conversation, and that nothing in it is markup of
// the client or the service.
func TestPage(t *testing.T) {
	s := script(t, "part-stored")
	refused := chunk(0, 10, -1, 400)
	refused.Method, refused.Header, refused.Text = "PUT", []string{"Content-Range: bytes 0-9/*"}, "<b>no</b>"
	e := seen(Absent, Failed).after(refused)
	e.Message = "<script>alert(1)</script>"
	results := []Result{
		{Script: s, Verdict: Judge(s, e), Exchanges: e.Exchanges},
		{Script: script(t, "plain"), Verdict: Judge(script(t, "plain"), seen(Right, Succeeded))},
	}
	page := string(Page("client --x='<y>'", results))
	for _, want := range []string{
		"<h1>2 scripts: 1 passed, 1 failed, 0 unmet, 0 disputed</h1>", `<a href="#part-stored">part-stored</a>`,
		"&lt;script&gt;alert(1)", "&gt; PUT (session 1)\n&gt; Content-Range: bytes 0-9/*\n&gt; Content-Length: 10\n",
		"&lt; 400\n&lt; &lt;b&gt;no&lt;/b&gt;\n",
		`<a href="` + s.Source + `">`, "object: absent, protocol: granularity",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	for _, bad := range []string{"<script", "<b>no", "<y>", `id="plain"`} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q:\n%s", bad, page)
		}
	}
}

// TestPageInBrowser checks that a browser shows the page, and loads nothing.
func TestPageInBrowser(t *testing.T) {
	if os.Getenv("GCSUP_TEST_CHROMIUM") == "" {
		t.Skip("takes seconds: GCSUP_TEST_CHROMIUM=1 runs it, if chromium is in PATH")
	}
	s := script(t, "nothing-stored")
	v, list, err := Run(t.Context(), client(ignoresRange), s, small)
	require.NoError(t, err)
	v.Message = "<script>document.title = 'run'</script>"
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	page := Page("client <b>", []Result{{Script: s, Verdict: v, Exchanges: list}})
	require.NoError(t, os.WriteFile(path, page, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	browser := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--user-data-dir="+dir, "--dump-dom", "file://"+path)
	browser.Env = append(os.Environ(), "HOME="+dir)
	dom, err := browser.Output()
	if err != nil {
		t.Fatalf("%v: %v", browser.Args, err)
	}
	doc, err := html.Parse(bytes.NewReader(dom))
	require.NoError(t, err)
	count, shown := map[string]int{}, ""
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			count[n.Data]++
		}
		if n.Type == html.TextNode {
			shown += n.Data
		}
	}
	if count["script"] > 0 || count["link"] > 0 || count["img"] > 0 || count["b"] != len(v.Failures) {
		t.Errorf("elements: %v; the page must load and run nothing", count)
	}
	if count["tr"] != 2 || count["h2"] != 1 || count["pre"] != 2 {
		t.Errorf("elements: %v, want one failed script", count)
	}
	for _, want := range []string{
		"1 scripts: 0 passed, 1 failed", v.Message, "> PUT (session 1)\n", "(fault: short-commit)", "< 308\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %q:\n%s", want, shown)
		}
	}
}
