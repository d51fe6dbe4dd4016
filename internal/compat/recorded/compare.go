package recorded

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A difference is one place in which fakegcs answers otherwise than recorded.
type difference struct {
	At       string // "status", "header NAME", or "body PATH"
	Recorded string // "" if absent
	Answered string // "" if absent
}

func (d difference) String() string {
	return fmt.Sprintf("%s: recorded %q, fakegcs %q", d.At, d.Recorded, d.Answered)
}

// inHeader reports whether the difference concerns a header.
func (d difference) inHeader() bool { return strings.HasPrefix(d.At, "header ") }

// compare returns the differences between two replies to one request. It learns the values
// that the servers chose.
func compare(recorded, answered answer, known *values) []difference {
	c := comparison{known: known}
	if recorded.Status != answered.Status {
		return []difference{{"status", strconv.Itoa(recorded.Status), strconv.Itoa(answered.Status)}}
	}
	c.bodies(recorded, answered) // first, because it learns generations
	c.headers(recorded, answered)
	return c.found
}

type comparison struct {
	known *values
	found []difference
}

func (c *comparison) differ(at, recorded, answered string) {
	c.found = append(c.found, difference{at, recorded, answered})
}

// The headers that depend on the connection, the time or a random number are compared by their presence.
var (
	uncompared  = []string{"Alt-Svc", "Connection", "Content-Length", "Date"}
	onlyPresent = []string{"Last-Modified", "Location", "X-Guploader-Uploadid"}
)

func (c *comparison) headers(recorded, answered answer) {
	names := slices.Sorted(maps.Keys(recorded.Header))
	for name := range maps.Keys(answered.Header) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		was, is := strings.Join(recorded.Header[name], ", "), strings.Join(answered.Header[name], ", ")
		switch {
		case slices.Contains(uncompared, name):
			continue
		case was != "" && is != "" && (slices.Contains(onlyPresent, name) || !c.comparable(name, was)):
			continue
		case name == "X-Goog-Generation" && was != "" && is != "" && c.known.learn(was, is):
			continue
		}
		if c.known.replace(was) != is {
			c.differ("header "+name, was, is)
		}
	}
	if !isText(recorded) && len(recorded.Body) > 0 { // the length of other bodies depends on values in them
		if was, is := recorded.Header.Get("Content-Length"), answered.Header.Get("Content-Length"); was != is {
			c.differ("header Content-Length", was, is)
		}
	}
}

var opaqueETag = regexp.MustCompile(`^(W/)?"?[A-Za-z0-9+/-]*=*"?$`)
var hexETag = regexp.MustCompile(`^(W/)?"[0-9a-f]{32}"$`)

// comparable reports whether the header's value means the same from both servers.
func (c *comparison) comparable(name, was string) bool {
	switch name {
	case "Expires": // either long ago, or now and later
		return strings.Contains(was, "1990")
	case "Etag": // the MD5, or a value that only the server understands
		return hexETag.MatchString(was) || !opaqueETag.MatchString(was)
	}
	return was != "CLEARED" // removed from the recording
}

// isText reports whether the body has fields instead of bytes of an object.
func isText(a answer) bool {
	t := a.Header.Get("Content-Type")
	return strings.HasPrefix(t, "application/json") || strings.HasPrefix(t, "application/xml") || a.Status >= 400
}

func (c *comparison) bodies(recorded, answered answer) {
	if !isText(recorded) {
		if string(recorded.Body) != string(answered.Body) {
			c.differ("body", abridged(recorded.Body), abridged(answered.Body))
		}
		return
	}
	was, is := fields(recorded.Body), fields(answered.Body)
	c.values("body", was, is)
}

func abridged(p []byte) string {
	if len(p) > 80 {
		return fmt.Sprintf("%s… (%d bytes)", p[:80], len(p))
	}
	return string(p)
}

// fields decodes a body of JSON or XML, or returns the text under the name "text".
func fields(body []byte) map[string]any {
	var m map[string]any
	if json.Unmarshal(body, &m) == nil && m != nil {
		return m
	}
	if m := xmlFields(body); m != nil {
		return m
	}
	if len(body) == 0 {
		return map[string]any{}
	}
	return map[string]any{"text": string(body)}
}

// xmlFields returns the elements below the root of an XML document, or nil.
func xmlFields(body []byte) map[string]any {
	dec := xml.NewDecoder(strings.NewReader(string(body)))
	m := map[string]any{}
	var path []string
	for {
		tok, err := dec.Token()
		if err == io.EOF && len(m) > 0 {
			return m
		}
		if err != nil {
			return nil
		}
		switch t := tok.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			if len(path) > 1 {
				m[strings.Join(path[1:], "/")] = ""
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if len(path) > 1 {
				m[strings.Join(path[1:], "/")] = string(t)
			}
		}
	}
}

// values compares two decoded values field by field.
func (c *comparison) values(at string, was, is any) {
	switch was := was.(type) {
	case map[string]any:
		is, _ := is.(map[string]any)
		if was["generation"] != nil && is["generation"] != nil { // before the fields that contain it
			c.known.learn(c.text(was["generation"]), c.text(is["generation"]))
		}
		c.learnOwner(was["owner"], is["owner"])
		names := slices.Sorted(maps.Keys(was))
		for name := range is {
			if _, ok := was[name]; !ok {
				names = append(names, name)
			}
		}
		for _, name := range names {
			c.values(at+" "+name, was[name], is[name])
		}
		return
	case []any:
		was, is := c.byEntity(was), c.byEntity(is)
		if len(is) == len(was) {
			for i := range was {
				c.values(at, was[i], is[i])
			}
			return
		}
	}
	w, i := c.text(was), c.text(is)
	if w == i || was != nil && is != nil && c.same(at[strings.LastIndex(at, " ")+1:], w, i) {
		return
	}
	c.differ(at, w, i)
}

// learnOwner learns the owner of an object: a user of another project than ours.
func (c *comparison) learnOwner(was, is any) {
	w, _ := was.(map[string]any)
	i, _ := is.(map[string]any)
	user, isUser := strings.CutPrefix(c.text(w["entity"]), "user-")
	ours, areUser := strings.CutPrefix(c.text(i["entity"]), "user-")
	if isUser && areUser {
		c.known.learn(user, ours)
	}
}

// byEntity sorts an access control list by the entity: its order has no meaning.
func (c *comparison) byEntity(v any) []any {
	list, _ := v.([]any)
	entity := func(v any) string {
		m, _ := v.(map[string]any)
		return c.known.replace(c.text(m["entity"]))
	}
	if len(list) > 0 && entity(list[0]) != "" {
		slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(entity(a), entity(b)) })
	}
	return list
}

// text returns a decoded value as a string, "" for nil.
func (c *comparison) text(v any) string {
	if v == nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	p, _ := json.Marshal(v)
	return string(p)
}

var (
	timeOfService = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[-+]\d\d:\d\d)`)
)

// same reports whether two values of the field name mean the same, although they were chosen by two servers.
func (c *comparison) same(name, was, is string) bool {
	switch name {
	case "etag": // of a policy, which a later request contains
		c.known.set(`"etag":"`+was+`"`, `"etag":"`+is+`"`)
		return true
	case "rewriteToken", "projectNumber":
		return c.known.learn(was, is)
	case "selfLink", "mediaLink":
		was, is = link(c.known.replace(was)), link(is)
		if at, ours := strings.Index(was, notifications), strings.Index(is, notifications); at >= 0 && ours >= 0 { // numbered by the server
			return c.known.learn(was[at:], is[ours:])
		}
		return was == is
	}
	mask := func(s string) string { return timeOfService.ReplaceAllString(s, "TIME") }
	return mask(c.known.replace(was)) == mask(is)
}

// notifications is the part of a notification's path before its number.
const notifications = "/notificationConfigs/"

// link returns a URL without its host: an emulator has only one.
func link(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return s
	}
	return strings.TrimPrefix(s, u.Scheme+"://"+u.Host)
}

// leftOut returns why the exchange is not sent, or "". These are rules: no exchange is named.
func leftOut(x exchange) string {
	body := string(x.Reply.Body)
	switch {
	case x.Reply.Status == http.StatusTooManyRequests:
		return "rate of requests"
	case strings.Contains(body, "SignatureDoesNotMatch"):
		return "signature"
	case x.Reply.Status == http.StatusUnauthorized, x.Reply.Status == http.StatusForbidden && strings.Contains(body, " does not have "):
		return "permission of another principal"
	}
	return ""
}

// notImplemented reports whether fakegcs refused the request because it lacks the operation.
func notImplemented(a answer) bool {
	return a.Status == http.StatusBadRequest && strings.Contains(string(a.Body), "This emulator does not implement")
}
