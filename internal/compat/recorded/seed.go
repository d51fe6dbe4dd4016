package recorded

import (
	"crypto/md5"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"gcsup/fakegcs"
)

// place is the bucket and the object that a request names. Each may be empty.
type place struct {
	bucket, object string
	json           bool   // the request is one of the JSON API
	call           string // what follows them in the path: "", "compose", "acl/…", "rewriteTo/…"
	to             *place // the destination of a rewrite
}

// placeOf parses the URL of a request of either API.
func placeOf(x exchange) place {
	u, err := url.Parse(x.URL)
	if err != nil {
		return place{}
	}
	path := strings.TrimPrefix(u.EscapedPath(), "/upload")
	rest, isJSON := strings.CutPrefix(path, "/storage/v1/b")
	if !isJSON {
		bucket, object, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		return place{bucket: bucket, object: unescape(object)}
	}
	segments := strings.Split(strings.Trim(rest, "/"), "/")
	p := place{json: true, bucket: segments[0]}
	if len(segments) < 2 || segments[1] != "o" {
		p.call = strings.Join(segments[1:], "/")
		return p
	}
	if len(segments) > 2 {
		p.object, p.call = unescape(segments[2]), strings.Join(segments[3:], "/")
	}
	if len(segments) == 8 && segments[3] == "rewriteTo" {
		p.to = &place{bucket: segments[5], object: unescape(segments[7])}
	}
	return p
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// contents has the bytes that occur in recordings, by their MD5.
type contents map[[md5.Size]byte][]byte

func contentsOf(list []conversation) contents {
	known := contents{}
	for _, c := range list {
		for _, x := range c.Exchanges {
			for _, part := range append(x.Parts, x.Reply.Body) {
				known[md5.Sum(part)] = part
			}
		}
	}
	return known
}

func (c contents) of(o fakegcs.Object) []byte {
	var sum [md5.Size]byte
	copy(sum[:], o.MD5)
	return c[sum]
}

// seeds returns the buckets and objects that existed before the conversation: those that it reads,
// lists, copies or deletes before it writes them.
func (c conversation) seeds(bytes contents) ([]fakegcs.Bucket, []fakegcs.ObjectContent) {
	s := seeding{
		bytes: bytes, made: map[string]bool{}, buckets: map[string]*fakegcs.Bucket{}, objects: map[string]int{}, pages: map[string]bool{},
		full: map[string]int{}, noACL: map[string]int{},
	}
	for _, x := range c.Exchanges {
		if u, err := url.Parse(x.URL); err == nil {
			s.pages[u.Query().Get("pageToken")] = true
		}
	}
	for _, x := range c.Exchanges {
		s.look(x)
	}
	var buckets []fakegcs.Bucket
	for _, b := range s.buckets {
		if s.full[b.Name] == 0 && s.noACL[b.Name] > 0 {
			b.UniformAccess = true
		}
		buckets = append(buckets, *b)
	}
	return buckets, s.list
}

// payer returns the project that must be added to a request of the owner of a bucket whose
// requesters pay: a request that names none and was not refused for that. pays has
// these buckets.
func payer(x exchange, pays map[string]bool) string {
	var made struct {
		Name    string
		Billing struct{ RequesterPays bool }
	}
	if json.Unmarshal(x.Reply.Body, &made) == nil && made.Billing.RequesterPays {
		pays[made.Name] = true
	}
	named := strings.Contains(x.URL, "userProject=") || x.Header.Get("X-Goog-User-Project") != ""
	if !pays[placeOf(x).bucket] || named || strings.Contains(strings.ToLower(string(x.Reply.Body)), "requester pays bucket") {
		return ""
	}
	return "owner"
}

// seeding follows a conversation.
type seeding struct {
	bytes   contents
	made    map[string]bool // what the conversation has made until now: "bucket" or "bucket/object"
	buckets map[string]*fakegcs.Bucket
	objects map[string]int // index in list
	list    []fakegcs.ObjectContent
	// full and noACL count the objects of each bucket that were returned with projection=full, with and
	// without an access control list.
	full, noACL map[string]int
	pages       map[string]bool // the page tokens that the conversation uses
}

// look adds what the exchange shows to have existed, and notes what it makes.
func (s *seeding) look(x exchange) {
	p := placeOf(x)
	s.bucket(x, p)
	if x.Reply.Status >= 300 {
		return
	}
	var meta struct {
		fakegcs.Object
		Items         []fakegcs.Object
		NextPageToken string
		Resource      fakegcs.Object
	}
	if p.json {
		_ = json.Unmarshal(x.Reply.Body, &meta)
	}
	if !p.json && x.Reply.Header.Get("X-Goog-Storage-Class") != "" {
		if b := s.buckets[p.bucket]; b != nil && b.StorageClass == "" {
			b.StorageClass = x.Reply.Header.Get("X-Goog-Storage-Class")
		}
	}
	for _, o := range append(meta.Items, meta.Object, meta.Resource) {
		s.learnBucket(x, o)
	}
	switch {
	case p.json && p.bucket == "" && x.Method == http.MethodPost:
		s.made[meta.Name] = true
	case p.json && p.object == "" && p.call == "" && x.Method == http.MethodPost: // an insert
		s.made[p.bucket+"/"+meta.Name] = true
	case p.json && p.object == "" && p.call == "" && p.bucket != "" && x.Method == http.MethodGet: // a list
		for _, o := range meta.Items {
			s.object(o)
		}
		if n := len(meta.Items); n > 0 && meta.NextPageToken != "" && !s.pages[meta.NextPageToken] { // there is one more
			s.object(fakegcs.Object{Bucket: p.bucket, Name: meta.Items[n-1].Name + "~"})
		}
	case p.to != nil:
		s.object(fakegcs.Object{Bucket: p.bucket, Name: p.object})
		s.made[p.to.bucket+"/"+p.to.object] = true
	case p.call == "compose", !p.json && x.Method == http.MethodPut:
		s.made[p.bucket+"/"+p.object] = true
	case p.call != "" || p.object == "":
	case x.Method == http.MethodDelete:
		s.object(fakegcs.Object{Bucket: p.bucket, Name: p.object})
	case x.Method == http.MethodGet && p.json:
		s.object(meta.Object)
	case x.Method == http.MethodGet && x.Reply.Header.Get("X-Goog-Hash") != "":
		s.object(fromHeader(p, x.Reply.Header))
	}
}

// fromHeader returns the object that a reply of the XML API describes.
func fromHeader(p place, h http.Header) fakegcs.Object {
	o := fakegcs.Object{
		Bucket: p.bucket, Name: p.object, ContentType: h.Get("Content-Type"), ContentEncoding: h.Get("X-Goog-Stored-Content-Encoding"),
		StorageClass: h.Get("X-Goog-Storage-Class"),
	}
	if o.ContentEncoding == "identity" {
		o.ContentEncoding = ""
	}
	if cc := h.Get("Cache-Control"); strings.HasPrefix(cc, "public") { // of its own; others are private
		o.CacheControl = cc
	}
	for _, value := range h["X-Goog-Hash"] {
		if sum, ok := strings.CutPrefix(value, "md5="); ok {
			_ = json.Unmarshal([]byte(`"`+sum+`"`), &o.MD5)
		}
	}
	return o
}

// object adds an object, unless it is known or was made in the conversation.
func (s *seeding) object(o fakegcs.Object) {
	name := o.Bucket + "/" + o.Name
	if _, seeded := s.objects[name]; seeded || s.made[name] || o.Bucket == "" || o.Name == "" {
		return
	}
	s.objects[name] = len(s.list)
	s.list = append(s.list, fakegcs.ObjectContent{
		Object: fakegcs.Object{
			Bucket: o.Bucket, Name: o.Name, ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, ContentLanguage: o.ContentLanguage,
			ContentDisposition: o.ContentDisposition, CacheControl: o.CacheControl, StorageClass: o.StorageClass, Metadata: o.Metadata,
		},
		Content: s.bytes.of(o),
	})
}

// bucket adds the bucket of a request, unless the reply shows that it did not exist or the conversation
// has made it.
func (s *seeding) bucket(x exchange, p place) {
	missing := x.Reply.Status == http.StatusForbidden || x.Reply.Status == http.StatusNotFound && !strings.Contains(string(x.Reply.Body), "No such object")
	if p.bucket == "" || s.made[p.bucket] || s.buckets[p.bucket] != nil || missing {
		return
	}
	s.buckets[p.bucket] = &fakegcs.Bucket{Name: p.bucket}
}

// learnBucket takes properties of a bucket from an object in it.
func (s *seeding) learnBucket(x exchange, o fakegcs.Object) {
	b := s.buckets[o.Bucket]
	if b == nil {
		return
	}
	if b.StorageClass == "" && !s.made[o.Bucket+"/"+o.Name] {
		b.StorageClass = o.StorageClass
	}
	if !strings.Contains(x.URL, "projection=full") {
		return
	}
	if len(o.ACL) > 0 {
		s.full[o.Bucket]++
	} else {
		s.noACL[o.Bucket]++
	}
}
