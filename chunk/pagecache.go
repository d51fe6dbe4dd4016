package chunk

import (
	"os"
	"sync"
)

const (
	// minCached is the size from which a file is read through a pageCache.
	minCached = 8<<20 + 1

	// cacheWindow is the range of a small file that is observed at a time, and the least distance of what is
	// observed from what is read. The system reads ahead by two of its own windows, of 128 KiB by default and
	// of up to 8 MiB on some devices.
	cacheWindow = 16 << 20

	// maxWindows bounds the windows of a file, which are larger if it is. maxRuns bounds the memory for a window. One
	// with more runs of pages that are not in the cache stays there. The memory is then at most 4 MiB.
	maxWindows, maxRuns = 4096, 64
)

// pageCache limits how much of the system's page cache the reads of a file take. Before bytes
// are read, it records which of their pages are not in the cache. When the bytes are released, it
// drops these pages. The other ones were there for another program.
type pageCache struct {
	size   int64
	length int64                        // of a window, a multiple of cacheWindow
	absent func(Range) ([]Range, error) // returns the pages of a range that are not in the cache
	drop   func(Range)

	mu    sync.Mutex
	added map[int64][]Range // by the number of the window: what its reads add to the cache
	off   bool              // the system does not report which pages are in the cache
}

// newPageCache returns the pageCache of a file, or nil if it has none.
func newPageCache(f *os.File, size int64) *pageCache {
	if size < minCached || !observable() {
		return nil
	}
	return pageCacheOf(size, func(r Range) ([]Range, error) { return absentPages(f, r) }, func(r Range) { dropPages(f, r) })
}

// pageCacheOf returns the pageCache of size bytes with the functions of a system.
func pageCacheOf(size int64, absent func(Range) ([]Range, error), drop func(Range)) *pageCache {
	windows := (size + cacheWindow - 1) / cacheWindow
	return &pageCache{
		size: size, length: cacheWindow * ((windows + maxWindows - 1) / maxWindows),
		absent: absent, drop: drop, added: map[int64][]Range{},
	}
}

// cachedFile is a file whose reads its pageCache observes.
type cachedFile struct {
	file  *os.File
	cache *pageCache
}

func (f cachedFile) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > 0 {
		f.cache.reading(Range{off, off + int64(len(p))})
	}
	return f.file.ReadAt(p, off)
}

// window returns the range of a window.
func (c *pageCache) window(i int64) Range {
	return Range{i * c.length, min((i+1)*c.length, c.size)}
}

// reading is called before the bytes of r are read. It observes their windows and the next one,
// into which the system may read ahead.
func (c *pageCache) reading(r Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := r.From / c.length; i <= (r.To-1)/c.length+1 && i*c.length < c.size && !c.off; i++ {
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

// release drops the pages of r that the reads have added. They can be released again, because the
// system may have read ahead since, or kept pages that were partly outside of r.
func (c *pageCache) release(r Range) {
	for _, pages := range c.addedIn(r) {
		c.drop(pages)
	}
}

// addedIn returns what the reads have added in r.
func (c *pageCache) addedIn(r Range) (found []Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := r.From / c.length; i*c.length < min(r.To, c.size); i++ {
		for _, a := range c.added[i] {
			in := Range{max(a.From, r.From), min(a.To, r.To)}
			if in.Len() <= 0 {
				continue
			}
			if n := len(found); n > 0 && found[n-1].To == in.From {
				found[n-1].To = in.To
			} else {
				found = append(found, in)
			}
		}
	}
	return found
}
