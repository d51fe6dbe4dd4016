package fleet

import (
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"gcsup/upload"
)

// WorkerStatus is the state of a worker, which the worker publishes.
type WorkerStatus struct {
	V         int            `json:"v"`
	Name      string         `json:"name"`
	Host      string         `json:"host"`
	PID       int            `json:"pid"`
	Started   time.Time      `json:"started"`
	Endpoint  string         `json:"endpoint"`    // to which it uploads
	Condition string         `json:"condition"`   // idle, sending, unhealthy or silent
	Rate      int64          `json:"bytes_per_s"` // of object data, recently
	RateLimit int64          `json:"limit_per_s"` // bytes per second of this worker; 0 is no limit
	Outages   []Outage       `json:"outages,omitempty"`
	Active    []ActiveUpload `json:"active"`

	// RequestRates has the requests per second that change objects, of all workers together, by bucket: of
	// buckets that answered 429, and of all if there is a limit.
	RequestRates map[string]float64 `json:"requests_per_s,omitempty"`
}

// ActiveUpload is a task that a worker is working on.
type ActiveUpload struct {
	Task        string `json:"task"`
	Destination string `json:"destination"` // for a group, that of its first file
	Files       int    `json:"files"`
	Committed   int64  `json:"committed"` // bytes that are durable at the service; of a group, those of finished files
	Sent        int64  `json:"sent"`      // bytes that are durable or were handed to the network
	Size        int64  `json:"size"`      // bytes
}

// Status returns the state of this worker.
func (w *Worker) Status() WorkerStatus {
	host, _ := os.Hostname()
	limit := w.rateLimit.Limit()
	if limit == upload.Unlimited {
		limit = 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WorkerStatus{
		V: 1, Name: w.opts.Name, Host: host, PID: os.Getpid(), Started: w.totals.started, Endpoint: w.uploaders.large.Endpoint(), Condition: w.condition(),
		Rate: w.totals.rate(time.Now()), RateLimit: limit, Active: []ActiveUpload{}, Outages: w.health.current(time.Now()),
	}
	for bucket, rate := range w.requests.All() {
		if s.RequestRates == nil {
			s.RequestRates = map[string]float64{}
		}
		s.RequestRates[bucket] = math.Round(rate.PerSecond())
	}
	for _, id := range slices.Sorted(maps.Keys(w.active)) {
		d := w.active[id]
		committed := d.execution.committed.Load()
		s.Active = append(s.Active, ActiveUpload{
			Task: id, Destination: d.task.spec(d.task.Files[0]).URL(), Files: len(d.task.Files),
			Committed: committed, Sent: max(committed, d.execution.sent.Load()), Size: d.task.Bytes(),
		})
	}
	return s
}
