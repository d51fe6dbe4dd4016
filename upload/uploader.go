package upload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/netconn"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/stream"
)

// Uploader uploads files and streams. It is safe for concurrent use, and uploads
// that share one also share a circuit breaker for their retries ([Options.Breaker]).
type Uploader struct {
	client  *session.Client
	opts    Options
	memory  *stream.Memory                            // of streams
	expect  engine.Expectation                        // of each source, see With
	version string                                    // of each source, see CallOptions.SourceVersion
	source  string                                    // name of each file, see CallOptions.SourceName
	accept  func(path string, info fs.FileInfo) error // see CallOptions.Accept; may be nil
	retry   engine.RetryRule
	link    *connections.Link
	buckets *parts.Buckets
	running *saved.Running
	rule    Skip // of calls

	small, large *backoff.Limiter // of batches
	batchMemory  int64            // of the small files of each batch

	goroutines *batch.Goroutines // of the jobs of a batch; nil for other calls
	compressor source.Compressor
	removal    removal // of sources
	below      string  // see CallOptions.Below
}

// removal is what [CallOptions].RemoveSource and Dispose request. The zero value removes nothing.
type removal struct {
	wanted  bool
	dispose func(dir *os.Root, path string, info fs.FileInfo, unchanged func() error) error // is called instead, if it is not nil
}

// New returns an Uploader that sends its requests with hc, which adds the
// credentials. See [NewTransport] for its transport. A nil hc means
// http.DefaultClient, without credentials. A nil opts uses the defaults.
//
// The Uploader uses a copy of hc without its Timeout, which would end every request
// that takes longer. Instead, [Options.StallTimeout] ends a request without progress,
// and the context of a call bounds the time of the call.
func New(hc *http.Client, opts *Options) (*Uploader, error) {
	o, err := cmp.Or(opts, &Options{}).withDefaults()
	if err != nil {
		return nil, fmt.Errorf("upload options: %w", err)
	}
	if hc != nil {
		untimed := *hc // the program may use hc too
		untimed.Timeout = 0
		hc = &untimed
	}
	client, err := session.NewClient(hc, o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("upload options: %w", err)
	}
	small, large := batch.NewLimiters(batch.OpenFiles())
	return &Uploader{
		small: small, large: large, batchMemory: batchMemory,
		client: client, opts: o, memory: stream.NewMemory(o.Memory), retry: engine.RetryRule{Time: o.RetryFor}, running: &saved.Running{}, buckets: &parts.Buckets{},
		link: &connections.Link{Memory: o.Memory, Held: o.RateLimit.held, Limited: o.RateLimit.low, Failing: o.Breaker.Open},
	}, nil
}

// Endpoint returns the scheme and host to which u sends.
func (u *Uploader) Endpoint() string { return u.client.Endpoint() }

// ID returns the identifier of the upload of a file to a destination. The same
// file, destination and endpoint have the same ID in every process. With
// [CallOptions].SourceName, the name counts and not the path.
func (u *Uploader) ID(path string, spec Spec) (string, error) {
	if u.source != "" {
		return u.hashID(spec, u.source), nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real // so that the same file has the same upload
	}
	return u.hashID(spec, abs), nil
}

// hashID returns the ID of an upload from its destination and source.
func (u *Uploader) hashID(spec Spec, source ...string) string {
	h := sha256.New()
	for _, field := range append([]string{u.client.Endpoint(), spec.Bucket, spec.Object}, source...) {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// newBudget returns a budget for one upload.
func (u *Uploader) newBudget() *engine.SharedBudget { return engine.NewSharedBudget(u.retry) }

// newUplink returns the uplink of an upload, or of a listing, with the options of u.
func (u *Uploader) newUplink(b *engine.SharedBudget, t *engine.Tally, r *reporter) *engine.Uplink {
	o := &u.opts
	return &engine.Uplink{
		Client: u.client, Policy: o.Policy, Breaker: o.Breaker, Budget: b, Limit: o.RateLimit.shared().Share(), AtRisk: &o.AtRisk.bound, Rate: o.RequestRates.pacing(),
		ChunkSize: o.ChunkSize, BriefObject: o.BriefObject,
		StallTimeout: o.StallTimeout, StallRate: o.StallRate, Notes: r, Tally: t,
	}
}

const writeBuffer = 64 << 10 // of a connection

// connectionMemory returns the size of the buffers of a connection that sends a small file of size
// bytes in one request. A thousand files of some KiB need less memory than their connections.
// net/http passes a request to the connection as a body only if it does not fit in the write buffer.
func connectionMemory(size int64) int64 {
	if size < writeBuffer {
		return writeBuffer
	}
	return writeBuffer + netconn.Memory
}

// TransportOptions configure the connections of [NewTransport].
type TransportOptions struct {
	// CongestionControl is the TCP congestion control of each connection, on Linux. Over a link that loses
	// packets, bbr is several times as fast as cubic: see docs/explain/performance.md. "auto" uses bbr for connections
	// to other machines if the system has it and allows it, and otherwise changes nothing. With another name
	// that the system refuses, each connection fails. "" and "system" leave the choice to the system.
	CongestionControl string
}

// NewTransport returns a transport that is tuned for uploads. A nil opts uses the defaults. Use it as the base
// of a client that adds credentials:
//
//	client := &http.Client{Transport: &oauth2.Transport{Source: tokens, Base: upload.NewTransport(nil)}}
//
// It differs from [http.DefaultTransport], which works too but is slower:
//
//   - HTTP/1.1 only. All uploads over one HTTP/2 connection would share its flow
//     control: https://github.com/GoogleCloudPlatform/gcsfuse/pull/427.
//   - A write buffer of 64 KiB instead of 4 KiB: fewer system calls for a body.
//   - 1,280 idle connections per host instead of 2, as many as a batch and the parts of a
//     file may need. Otherwise most small files of a batch would need a new
//     connection, with a TLS handshake and a port.
//   - Without TLS, the bytes of a body are sent without a copy. [net/http] copies them, in
//     pieces of 32 KiB. With TLS, only the client of package upload/gcs does this,
//     because a transport that does it must not be cloned.
//   - No compression of replies, which are small.
//   - Connections are spread over all addresses of a host. An address that drops all
//     packets costs 0.3 s, because the next address is then tried, too.
//     http.DefaultTransport waits for 15 s or more.
//   - 30 s to connect, 10 s for the TLS handshake. There is no timeout for a
//     reply or for the whole request: the service may need minutes to answer the
//     last request of a large object, and [Options.StallTimeout] ends a request
//     that makes no progress.
//   - If a proxy refuses to connect, the error is a [backoff.ProxyError], so that only
//     a temporary refusal is retried. As for http.DefaultTransport, proxies come from
//     the environment.
//
// An Uploader follows no redirects, even if the CheckRedirect of its client does: a
// redirect would send the session URI, which is a secret, to another host.
//
// Each transport has its own connections. Share one between Uploaders. The
// caller may change its fields before the first request, for example
// TLSClientConfig or Proxy.
func NewTransport(opts *TransportOptions) *http.Transport {
	if opts == nil {
		opts = &TransportOptions{}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: backoff.CheckProxy,
		DialContext:            netconn.NewDialer(opts.CongestionControl).DialConn,
		TLSHandshakeTimeout:    10 * time.Second,
		Protocols:              &protocols,
		MaxIdleConnsPerHost:    batch.MaxSmall + 256,
		IdleConnTimeout:        90 * time.Second,
		WriteBufferSize:        writeBuffer,
		DisableCompression:     true,
	}
}
