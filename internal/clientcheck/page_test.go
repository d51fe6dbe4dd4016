package clientcheck

import (
	"strings"
	"testing"
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
