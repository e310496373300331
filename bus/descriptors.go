package bus

// nodeFiles is how many descriptors the port and the socket leave to the node itself:
// logs, pipes of tools and servers, connections to models.
const nodeFiles = 512

// connsMin is how many connections the port, and the socket, take at the least.
const connsMin = 16

// limitConnections reduces the most connections of the port and of the socket to what
// the limit on open files leaves: each takes one.
func limitConnections(files uint64) (port, socket int) {
	left := connsMin * 2
	if files > nodeFiles {
		left = max(left, int(min(files-nodeFiles, PortConnsMax+SocketConnsMax)))
	}
	return min(PortConnsMax, left/2), min(SocketConnsMax, left/2)
}

// connections is limitConnections by the limit of this process. It logs a reduction.
func (e *Embedded) connections() (port, socket int) {
	files := openFilesMax()
	port, socket = limitConnections(files)
	if port < PortConnsMax || socket < SocketConnsMax {
		e.cfg.Logger.Warn("the limit on open files leaves room for fewer connections; raise it (ulimit -n, LimitNOFILE)",
			"open_files_max", files, "for_the_node", nodeFiles, "port_connections_max", port, "socket_connections_max", socket, "default", PortConnsMax)
	}
	return port, socket
}
