package fakegcs

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type objectList struct {
	Kind          string           `json:"kind"`
	NextPageToken string           `json:"nextPageToken,omitempty"`
	Prefixes      []string         `json:"prefixes,omitempty"`
	Items         []objectResource `json:"items,omitempty"`
}

// listQuery is the parsed query of a listing.
type listQuery struct {
	prefix, delimiter, start, end, after string
	trailing                             bool // includeTrailingDelimiter
	versions, soft                       bool
	folders                              bool // includeFoldersAsPrefixes
	limit                                int
	glob                                 *regexp.Regexp // nil for all names
	filter                               *contextFilter // nil for all objects
}

func (q *request) listQuery() (listQuery, *apiError) {
	p := q.query
	l := listQuery{
		prefix: p.Get("prefix"), delimiter: p.Get("delimiter"), start: p.Get("startOffset"), end: p.Get("endOffset"),
		trailing: q.flag("includeTrailingDelimiter"), versions: q.flag("versions"), soft: q.flag("softDeleted"),
		limit: 1000, after: p.Get("start-after"),
	}
	most, token := p.Get("maxResults"), p.Get("pageToken")
	if q.xml {
		if most, token = p.Get("max-keys"), p.Get("continuation-token"); token == "" && p.Has("marker") {
			l.after = p.Get("marker")
		}
	}
	if filter := p.Get("filter"); filter != "" {
		var err *apiError
		if l.filter, err = parseContextFilter(filter); err != nil {
			return l, err
		}
	}
	if glob := p.Get("matchGlob"); glob != "" {
		var err *apiError
		if l.glob, err = globPattern(glob); err != nil {
			return l, err
		}
	}
	if most != "" {
		n, err := strconv.Atoi(most)
		if err != nil || n < 0 {
			return l, invalid("Invalid value for maxResults: '%s'.", most)
		}
		if n > 0 {
			l.limit = min(n, 1000)
		}
	}
	l.folders = q.flag("includeFoldersAsPrefixes") && l.delimiter == "/"
	if l.versions && l.soft {
		return l, invalid("versions and softDeleted can't be listed together.")
	}
	if token != "" {
		after, ok := parsePageToken(token)
		if !ok {
			return l, invalid("Invalid page token '%s'.", token)
		}
		l.after = after
	}
	return l, nil
}

// pageToken returns the token for the page that begins after a name. It is that of the service:
// the first field of a protocol buffer.
func pageToken(after string) string {
	p := binary.AppendUvarint([]byte{pageTokenField}, uint64(len(after)))
	return base64.StdEncoding.EncodeToString(append(p, after...))
}

const pageTokenField = 1<<3 | 2 // number 1, of bytes

func parsePageToken(token string) (after string, ok bool) {
	p, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(p) == 0 || p[0] != pageTokenField {
		return "", false
	}
	n, width := binary.Uvarint(p[1:])
	if width <= 0 || n != uint64(len(p)-1-width) {
		return "", false
	}
	return string(p[1+width:]), true
}

// page is one page of a listing. next is its last name or prefix, or "" if it is the
// last page.
type page struct {
	objects  []*Object
	prefixes []string
	next     string
}

// list returns the page that l selects.
func (b *bucket) list(l listQuery) page {
	var p page
	first := max(l.prefix, l.start)
	if l.after != "" {
		first = max(first, l.after+"\x00") // the next possible name
	}
	names := b.sortedNames()
	if l.folders {
		names = b.withFolders(names)
	}
	i, _ := slices.BinarySearch(names, first)
	last := "" // the last name or prefix of the page
	for ; i < len(names); i++ {
		name := names[i]
		if !strings.HasPrefix(name, l.prefix) || l.end != "" && name >= l.end {
			break
		}
		if l.glob != nil && !l.glob.MatchString(name) {
			continue
		}
		var found []*Object
		if g := b.objects[name]; g != nil {
			found = g.visible(l)
		}
		if len(found) == 0 && !(l.folders && b.isFolder(name)) {
			continue
		}
		rolled := ""
		if l.delimiter != "" {
			if at := strings.Index(name[len(l.prefix):], l.delimiter); at >= 0 {
				rolled = name[:len(l.prefix)+at+len(l.delimiter)]
			}
		}
		if rolled != "" && rolled == l.after {
			continue // on the previous page
		}
		fresh := rolled != "" && (len(p.prefixes) == 0 || p.prefixes[len(p.prefixes)-1] != rolled)
		if l.filter != nil { // prefixes are exempt from it
			found = slices.DeleteFunc(found, func(o *Object) bool { return !l.filter.match(o) })
		}
		plain := len(found) > 0 && (rolled == "" || l.trailing && rolled == name)
		if (fresh || plain) && len(p.objects)+len(p.prefixes) >= l.limit {
			p.next = last
			return p
		}
		if fresh {
			p.prefixes = append(p.prefixes, rolled)
			last = rolled
		}
		if plain {
			p.objects = append(p.objects, found...)
			last = name
		}
	}
	return p
}

// visible returns the generations of one name that a listing shows.
func (g *generations) visible(l listQuery) []*Object {
	var out []*Object
	add := func(vs []*version) {
		for _, v := range vs {
			out = append(out, v.Object)
		}
	}
	switch {
	case l.soft:
		add(g.soft)
		return out
	case l.versions:
		add(g.old)
	}
	if g.live != nil {
		out = append(out, g.live.Object)
	}
	return out
}

// listObjects returns the page of a bucket that l selects.
func (s *store) listObjects(bucket string, l listQuery) (page, *apiError) {
	s.mu.Lock()
	defer s.unlock()
	b, err := s.bucketLocked(bucket)
	if err != nil {
		return page{}, err
	}
	if l.soft && b.softDeleteFor() == 0 {
		return page{}, errNoSoftDelete()
	}
	s.expireLocked(b, s.now())
	return b.list(l), nil
}

func (a objectAPI) list(q *request) *reply {
	l, err := q.listQuery()
	if err != nil {
		return err.reply(q.xml)
	}
	p, err := a.listObjects(q.bucket, l)
	if err != nil {
		return err.reply(q.xml)
	}
	if q.xml {
		return xmlListing(q, l, p)
	}
	out := objectList{Kind: "storage#objects", Prefixes: p.prefixes}
	for _, o := range p.objects {
		out.Items = append(out.Items, q.resource(o).withoutChecksums(nil))
	}
	if p.next != "" {
		out.NextPageToken = pageToken(p.next)
	}
	return jsonReply(http.StatusOK, out)
}
