package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// listing is a listing of pages, each of which takes a second. The service refuses some requests.
type listing struct {
	pages    [][]string
	refuse   map[int]error // by the number of the request, from 1
	requests int
	offsets  []string // of the listings that were started
}

func (l *listing) fetch(ctx context.Context, q bucket.Query) (*bucket.Page, error) {
	l.requests++
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := l.refuse[l.requests]; err != nil {
		return nil, err
	}
	at := 0
	if q.PageToken == "" {
		l.offsets = append(l.offsets, q.StartOffset)
		for q.StartOffset != "" && at < len(l.pages)-1 && l.pages[at][len(l.pages[at])-1] < q.StartOffset {
			at++
		}
	} else if _, err := fmt.Sscan(q.PageToken, &at); err != nil {
		return nil, err
	}
	page := &bucket.Page{}
	for _, name := range l.pages[at] {
		if q.PageToken != "" || name >= q.StartOffset {
			page.Objects = append(page.Objects, session.Object{Name: name})
		}
	}
	if at+1 < len(l.pages) {
		page.NextPageToken = fmt.Sprint(at + 1)
	}
	return page, nil
}

// TestObjects checks that all objects of a listing are yielded, with one page read ahead, and what ends it.
func TestObjects(t *testing.T) {
	expired := error(&session.Error{Kind: session.ErrInvalid})
	pages := [][]string{{"p/a", "p/b"}, {"p/c"}, {}, {"p/d", "p/e"}}
	for _, tt := range []struct {
		name     string
		pages    [][]string
		refuse   map[int]error
		stopAt   int // objects; 0: never
		want     []string
		err      error
		requests int
		took     time.Duration
	}{
		{"all", pages, nil, 0, []string{"p/a", "p/b", "p/c", "p/d", "p/e"}, nil, 4, 7 * time.Second}, // the first page, five objects, and the page after an empty one
		{"stopped", pages, nil, 1, []string{"p/a"}, nil, 2, time.Second},
		{"empty", [][]string{{}}, nil, 0, nil, nil, 1, time.Second},
		{"not in order", [][]string{{"p/a", "p/c"}, {"p/b"}}, nil, 0, []string{"p/a", "p/c"}, session.ErrProtocol, 2, 3 * time.Second},
		{"twice", [][]string{{"p/a"}, {"p/a"}}, nil, 0, []string{"p/a"}, session.ErrProtocol, 2, 2 * time.Second},
		{"not below the prefix", [][]string{{"p/a", "q"}}, nil, 0, []string{"p/a"}, session.ErrProtocol, 1, 2 * time.Second},
		{"first page fails", pages, map[int]error{1: errPage}, 0, nil, errPage, 1, time.Second},
		{"later page fails", pages, map[int]error{2: errPage}, 0, []string{"p/a", "p/b"}, errPage, 2, 3 * time.Second},
		{"token expired", pages, map[int]error{2: expired}, 0, []string{"p/a", "p/b", "p/c", "p/d", "p/e"}, nil, 6, 8 * time.Second},
		{"token refused twice", pages, map[int]error{2: expired, 3: expired}, 0, []string{"p/a", "p/b"}, session.ErrInvalid, 3, 3 * time.Second},
		{"every second token expired", pages, map[int]error{2: expired, 4: expired, 6: expired}, 0, []string{"p/a", "p/b"}, session.ErrInvalid, 4, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, began := &listing{pages: tt.pages, refuse: tt.refuse}, time.Now()
			var got []string
			var failed error
			for o, err := range Objects(t.Context(), bucket.Query{Bucket: "bkt", Prefix: "p/"}, l.fetch) {
				if failed = err; err != nil {
					continue
				}
				if got = append(got, o.Name); len(got) == tt.stopAt {
					break
				}
				time.Sleep(time.Second)
			}
			if took := time.Since(began); !slices.Equal(got, tt.want) || !errors.Is(failed, tt.err) || l.requests != tt.requests || took != tt.took {
				t.Errorf("%s: %q, %v, %d requests in %v; want %q, %v, %d in %v", tt.name, got, failed, l.requests, took, tt.want, tt.err, tt.requests, tt.took)
			}
			if _, restarted := tt.refuse[2]; restarted && tt.err == nil && !slices.Equal(l.offsets, []string{"", "p/b"}) {
				t.Errorf("%s: the listings began at %q", tt.name, l.offsets)
			}
		})
	}
}

// TestMergeReadsAhead checks that the next page is read while the names of a page are used, once eight of them
// were, and that Close ends the request.
func TestMergeReadsAhead(t *testing.T) {
	for used, want := range map[int]time.Duration{7: 3 * time.Second, 8: 2 * time.Second} { // one page, the pause, and the next page
		synctest.Test(t, func(t *testing.T) {
			l := &listing{pages: [][]string{nil, nil, nil}}
			for i := range l.pages {
				for j := range 10 {
					l.pages[i] = append(l.pages[i], fmt.Sprintf("p/%d%d", i, j))
				}
			}
			m, began := merge("p/", l.fetch), time.Now()
			look := func(name string) {
				if o, listed, err := m.Lookup(name); o == nil || o.Name != name || !listed || err != nil {
					t.Errorf("%s: %+v, %v, %v", name, o, listed, err)
				}
			}
			for j := range used {
				look(l.pages[0][j])
			}
			time.Sleep(time.Second)
			look("p/10")
			if took := time.Since(began); took != want {
				t.Errorf("after %d names: %v, want %v", used, took, want)
			}
			for j := range 8 {
				look(l.pages[1][j]) // the last page is requested now
			}
			began = time.Now()
			if m.Close(); time.Since(began) != 0 {
				t.Errorf("closed after %v", time.Since(began))
			}
		})
	}
}
