// Package pagecache limits how much of the page cache of the system the reads of a large file take.
package pagecache

import (
	"os"
	"sync"
)

const (
	// minCached is the size from which a file is read through a Cache.
	minCached = 8<<20 + 1

	// cacheWindow is the range of a small file that is observed at a time, and the least distance of what is
	// observed from what is read. The system reads ahead by two of its own windows, of 128 KiB by default and
	// of up to 8 MiB on some devices.
	cacheWindow = 16 << 20

	// maxWindows bounds the windows of a file, which are larger if it is. maxRuns bounds the memory for a window. One
	// with more runs of pages that are not in the cache stays there. The memory is then at most 4 MiB.
	maxWindows, maxRuns = 4096, 64
)

// span is the half-open range of bytes [from, to) of a file.
type span struct{ from, to int64 }

func (s span) len() int64 { return s.to - s.from }

// Cache limits how much of the system's page cache the reads of a file take. Before bytes
// are read, it records which of their pages are not in the cache. When the bytes are released, it
// drops these pages. The other ones were there for another program.
type Cache struct {
	file   *os.File
	size   int64
	length int64                      // of a window, a multiple of cacheWindow
	absent func(span) ([]span, error) // returns the pages of a range that are not in the cache
	drop   func(span)

	mu    sync.Mutex
	added map[int64][]span // by the number of the window: what its reads add to the cache
	off   bool             // the system does not report which pages are in the cache
}

// New returns the Cache of a file of size bytes, or nil if it has none: the file is small, or the system does not
// report which pages are in its cache.
func New(f *os.File, size int64) *Cache {
	if size < minCached || !observable() {
		return nil
	}
	c := cacheOf(size, func(r span) ([]span, error) { return absentPages(f, r) }, func(r span) { dropPages(f, r) })
	c.file = f
	return c
}

// cacheOf returns the Cache of size bytes with the functions of a system.
func cacheOf(size int64, absent func(span) ([]span, error), drop func(span)) *Cache {
	windows := (size + cacheWindow - 1) / cacheWindow
	return &Cache{
		size: size, length: cacheWindow * ((windows + maxWindows - 1) / maxWindows),
		absent: absent, drop: drop, added: map[int64][]span{},
	}
}

// ReadAt reads the file.
func (c *Cache) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > 0 {
		c.reading(span{off, off + int64(len(p))})
	}
	return c.file.ReadAt(p, off)
}

// window returns the range of a window.
func (c *Cache) window(i int64) span {
	return span{i * c.length, min((i+1)*c.length, c.size)}
}

// reading is called before the bytes of r are read. It observes their windows and the next one,
// into which the system may read ahead.
func (c *Cache) reading(r span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := r.from / c.length; i <= (r.to-1)/c.length+1 && i*c.length < c.size && !c.off; i++ {
		if _, observed := c.added[i]; observed {
			continue
		}
		absent, err := c.absent(c.window(i))
		if err != nil {
			c.off, c.added = true, nil
			return
		}
		if len(absent) > maxRuns {
			absent = nil
		}
		c.added[i] = absent
	}
}

// Release drops the pages of the bytes [from, to) that the reads have added. They can be released again, because the
// system may have read ahead since, or kept pages that were partly outside of the bytes.
func (c *Cache) Release(from, to int64) {
	for _, pages := range c.addedIn(span{from, to}) {
		c.drop(pages)
	}
}

// addedIn returns what the reads have added in r.
func (c *Cache) addedIn(r span) (found []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := r.from / c.length; i*c.length < min(r.to, c.size); i++ {
		for _, a := range c.added[i] {
			in := span{max(a.from, r.from), min(a.to, r.to)}
			if in.len() <= 0 {
				continue
			}
			if n := len(found); n > 0 && found[n-1].to == in.from {
				found[n-1].to = in.to
			} else {
				found = append(found, in)
			}
		}
	}
	return found
}
