package upload

import (
	"net/http"
	"time"

	"gcsup/backoff"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/netconn"
)

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

// NewTransport returns a transport that is tuned for uploads. Use it as the base
// of a client that adds credentials:
//
//	client := &http.Client{Transport: &oauth2.Transport{Source: tokens, Base: upload.NewTransport()}}
//
// It differs from [http.DefaultTransport], which works too but is slower:
//
//   - HTTP/1.1 only. All uploads over one HTTP/2 connection would share its flow
//     control: https://github.com/GoogleCloudPlatform/gcsfuse/pull/427.
//   - A write buffer of 64 KiB instead of 4 KiB: fewer system calls for a body.
//   - 1,280 idle connections per host instead of 2, as many as a batch and the parts of a
//     file may need. Otherwise most small files of a batch would need a new
//     connection, with a TLS handshake and a port.
//   - Without TLS, the bytes of a body are sent from its memory. [net/http] copies them, in
//     pieces of 32 KiB. With TLS, only the client of package upload/gcs does this, because
//     it needs a DialTLSContext that a clone of the transport could not use.
//   - No compression of replies, which are small.
//   - Connections are spread over all addresses of a host. One that drops all packets costs
//     0.3 s: the next one is tried, too. http.DefaultTransport waits for 15 s or more.
//   - 30 s to connect, 10 s for the TLS handshake. There is no timeout for a
//     reply or for the whole request: the service may need minutes to answer the
//     last request of a large object, and [Options.StallTimeout] ends a request
//     that makes no progress.
//   - A proxy that refuses to connect is an error of package backoff, so that only
//     causes that may pass are retried. As for http.DefaultTransport, proxies come
//     from the environment.
//
// An Uploader follows no redirects, even if the CheckRedirect of its client does: a
// redirect would send the session URI, which is a secret, to another host.
//
// Each transport has its own connections. Share one between Uploaders. The
// caller may change its fields before the first request, for example
// TLSClientConfig or Proxy.
func NewTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: backoff.CheckProxy,
		DialContext:            newDialer().dialConn,
		TLSHandshakeTimeout:    10 * time.Second,
		Protocols:              &protocols,
		MaxIdleConnsPerHost:    batch.MaxSmall + 256,
		IdleConnTimeout:        90 * time.Second,
		WriteBufferSize:        writeBuffer,
		DisableCompression:     true,
	}
}
