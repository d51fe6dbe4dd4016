package recorded

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// build returns the request of the exchange for the server at base. Values that the service chose,
// such as generations, are replaced by those that the server chose.
func (x exchange) build(base string, known *values) (*http.Request, error) {
	u, err := url.Parse(known.replace(x.URL))
	if err != nil {
		return nil, err
	}
	if x.Payer != "" {
		query := u.Query()
		query.Set("userProject", x.Payer)
		u.RawQuery = query.Encode()
	}
	if to, err := url.Parse(base); err == nil {
		u.Scheme, u.Host = to.Scheme, to.Host
	}
	body, mediaType := x.body(known)
	req, err := http.NewRequest(x.Method, u.String(), body)
	if err != nil {
		return nil, err
	}
	for name, list := range x.Header {
		if name != "Content-Length" {
			req.Header[name] = list
		}
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	for _, prefix := range []string{"X-Goog-", "X-Goog-Copy-Source-"} {
		known.setKey(req.Header, prefix+"Encryption-Key")
	}
	return req, nil
}

// body returns the body and its type. The types of the parts of a multipart body are not recorded: Google's
// Go client sends JSON, and then the bytes with the contentType that the JSON names.
func (x exchange) body(known *values) (io.Reader, string) {
	if len(x.Parts) < 2 {
		body := bytes.Join(x.Parts, nil)
		if x.MediaType == "application/json" {
			body = []byte(known.replace(string(body)))
		}
		return bytes.NewReader(body), x.MediaType
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for i, part := range x.Parts {
		header := textproto.MIMEHeader{}
		if i == 0 {
			header.Set("Content-Type", "application/json")
		} else if t := x.contentType(); t != "" {
			header.Set("Content-Type", t)
		}
		p, err := w.CreatePart(header)
		if err == nil {
			_, err = p.Write(part)
		}
		if err != nil {
			panic(err) // a bytes.Buffer has no errors
		}
	}
	_ = w.Close()
	return &buf, x.MediaType + "; boundary=" + w.Boundary()
}

// contentType returns the type of the bytes in a multipart body: of the metadata, or of the object that the
// service made, because clients that name none send one that they guess.
func (x exchange) contentType() string {
	var meta, made struct{ ContentType string }
	_ = json.Unmarshal(x.Parts[0], &meta)
	if meta.ContentType == "" && x.Reply.Status == http.StatusOK {
		_ = json.Unmarshal(x.Reply.Body, &made)
	}
	return meta.ContentType + made.ContentType
}

// send sends the request and reads the whole reply. It does not decompress the body.
func send(client *http.Client, req *http.Request) (answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
}

// values maps what the service chose, such as generations, to what fakegcs chose in its place.
type values struct {
	ours     map[string]string
	replacer *strings.Replacer // of ours; nil after a change
}

func newValues() *values { return &values{ours: map[string]string{}} }

// learn records that fakegcs has chosen ours where the service chose recorded. It reports whether this agrees
// with what is known.
func (v *values) learn(recorded, ours string) bool {
	if strings.Trim(recorded, "0123456789") == "" && len(recorded) < 10 {
		return recorded == ours // too short to be replaced
	}
	if old, ok := v.ours[recorded]; ok {
		return old == ours
	}
	v.set(recorded, ours)
	return true
}

// set is learn for a value that changes, such as the etag of a policy.
func (v *values) set(recorded, ours string) { v.ours[recorded], v.replacer = ours, nil }

// replace replaces the recorded values in s.
func (v *values) replace(s string) string {
	if v.replacer == nil {
		var pairs []string
		for _, recorded := range slices.SortedFunc(maps.Keys(v.ours), longestFirst) {
			pairs = append(pairs, recorded, v.ours[recorded])
			if e := url.QueryEscape(recorded); e != recorded {
				pairs = append(pairs, e, url.QueryEscape(v.ours[recorded]))
			}
		}
		v.replacer = strings.NewReplacer(pairs...)
	}
	return v.replacer.Replace(s)
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// setKey replaces an encryption key, which was removed from the recording, by a key of ours. Its hash was
// recorded, so that the same key becomes the same key.
func (v *values) setKey(h http.Header, name string) {
	recorded := h.Get(name + "-Sha256")
	if h.Get(name) == "" || recorded == "" {
		return
	}
	key := sha256.Sum256([]byte(recorded))
	sum := sha256.Sum256(key[:])
	hash := base64.StdEncoding.EncodeToString(sum[:])
	v.learn(recorded, hash)
	h.Set(name, base64.StdEncoding.EncodeToString(key[:]))
	h.Set(name+"-Sha256", hash)
}

func (x exchange) String() string { return fmt.Sprintf("%s %s", x.Method, x.URL) }
