/** The words of what is loaded on demand: pages beside the herd, the wall, paper, the list of keys. */
import type { Role } from "./people";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

export const pageStrings = {
  keys: {
    heading: "Keyboard shortcuts",
    groups: { go: "Go", nodes: "Nodes", charts: "On a chart", page: "Page" },
    search: "Search",
    herd: "Herd",
    users: "Users",
    timeline: "Bookings",
    usage: "Usage",
    next: "Next node",
    previous: "Previous node",
    open: "Open or close the node",
    earlier: "Move the cursor",
    minute: "Move the cursor by a minute",
    ends: "Start, end",
    pause: "Pause or resume",
    refresh: "Refresh now",
    theme: "Next colour theme",
    help: "Show this list",
    then: "then",
    or: "or",
  },

  wall: {
    free: "Free GPUs",
    byModel: "Free by type",
    nodesInFault: (nodes: number): string => plural(nodes, "whole node", "whole nodes"),
    page: (page: number, pages: number): string => `${page} / ${pages}`,
    lost: "NOT LIVE",
    lostSince: (age: string): string => `This data is ${age} old.`,
  },

  paper: {
    countsOnly: (nodes: number, most: number): string =>
      `${plural(nodes, "node", "nodes")}, with GPU counts only. To print each GPU, search for ${most} nodes or fewer first.`,
    leftOut: (nodes: number): string =>
      `${plural(nodes, "node is", "nodes are")} not printed. To print them, search for fewer nodes first.`,
  },

  users: {
    heading: "Users",
    table: "Users and their GPUs",
    user: "User",
    gpus: "GPUs",
    memory: "GPU memory",
    processes: "Processes",
    fraction: "Share of herd",
    use: "State",
    idleSince: "Held idle",
    free: "free",
    processesUnit: (count: number): string => (count === 1 ? " process" : " processes"),
    count: (users: number): string => plural(users, "user", "users"),
    summary: (users: number, devices: string): string => `${plural(users, "user", "users")}, ${devices}`,
    page: (user: string): string => `${user} over time`,
    thisIsMe: "This is me",
    me: "you",
    markMe: (user: string): string => `I am ${user}: mark this row`,
    unmarkMe: "Remove the mark",
    busy: (count: number): string => `${count} busy`,
    idle: (count: number): string => `${count} held idle`,
    offline: (count: number): string => `${count} offline`,
    other: (count: number): string => `${count} unknown`,
    useOf: (parts: string): string => `Devices: ${parts}`,
    noneHint: "A new process appears here within a few seconds.",
    none: "No one is using a GPU right now.",
    moreNodes: (count: number): string => plural(count, "more node", "more nodes"),
    fewer: "show fewer",
    exact: (held: string): string => `${held} GPUs; a shared GPU is split by memory`,
  },

  charts: {
    heading: "Last 15 minutes",
    zone: (zone: string): string => `Times in ${zone}`,
    noPast: "Could not load the minutes before you opened this page.",
    utilization: "Utilisation",
    memory: "Memory",
    temperature: "Temperature",
    power: "Power",
    clock: "SM clock",
    host: "Node",
    cpu: "CPU",
    ram: "RAM",
    since: (when: string): string => `Since ${when}`,
    filling: "Fewer than 15 minutes so far",
    cursor: (title: string): string => `${title} over time`,
    cursorAt: (time: string, values: string): string => `${time}: ${values}`,
    cursorHint: "Arrow keys move the cursor",
    waiting: "No data yet",
    notReported: "Not reported",
    only: (label: string): string => `Show ${label} only`,
    all: (label: string): string => `Show all, not only ${label}`,
    lineSummary: (label: string, last: string, low: string, high: string): string =>
      `${label}: now ${last}, between ${low} and ${high}.`,
    lineUnknown: (label: string): string => `${label}: unknown.`,
  },

  gpu: {
    uuid: "UUID",
    model: "Product name",
    vendor: "Vendor",
    pci: "PCI address",
    compute: "Compute capability",
    profile: "MIG profile",
    parent: "Slice of",
    memoryBasis: "Memory",
    basis: {
      framebuffer: "GPU memory",
      framebuffer_with_reserved: "GPU memory, including what the driver reserves",
      host: "shared with the node",
    },
    fan: "Fan",
    performance: "Performance state",
    clock: "SM clock",
    clockOf: (hertz: number, most: number | null): string =>
      most === null
        ? `${Math.round(hertz / 1e6)} MHz`
        : `${Math.round(hertz / 1e6)} of ${Math.round(most / 1e6)} MHz`,
    memoryController: "Memory controller",
    throttle: "Clocks limited by",
    notThrottled: "nothing",
    ecc: "Uncorrected ECC errors",
    eccNone: "none",
    copy: "Copy",
    copied: "Copied",
    calendar: "Add bookings to my calendar",
    copyUuid: "Copy UUID",
    throttleReasons: {
      1: "idle",
      2: "application clock setting",
      4: "the power limit",
      8: "hardware slowdown",
      16: "sync boost",
      32: "heat",
      64: "heat (hardware)",
      128: "power brake (hardware)",
      256: "display clocks",
    } as Record<number, string>,
  },

  pages: {
    back: "Back to the herd",
    wayBack: "Where you are",
    herd: "Herd",
    loading: "Loading …",
    noNode: "Node not found",
    noNodeHint: (id: string): string =>
      `The herd has no node ${id}. It may have been removed or renamed, or the address is wrong.`,
    noGpu: "GPU not found",
    noGpuHint: (id: string): string =>
      `No node reports GPU ${id}. It may have been removed, replaced or split into slices, or the address is wrong.`,
    similar: "Did you mean",
    gpu: (label: string): string => `GPU ${label}`,
    gpus: "GPUs",
    processes: "Processes",
    noProcesses: "No processes on this node's GPUs.",
    noProcessesHere: "No processes on this GPU.",
    machine: "Machine",
    disks: "Disks",
    about: "About this GPU",
    slices: "Slices",
    hidden: (rows: string): string => `${rows} not shown.`,
    showAll: (rows: string): string => `Show all ${rows}`,
    showFewer: (rows: number): string => `Show only the first ${rows}`,
    lastReport: (age: string): string => `last report ${age} ago`,
  },

  person: {
    account: "Account",
    admin: "Administration",
    logOut: "Log out",
    logOutFailed: "The hub did not respond. You are still logged in.",
    roles: { viewer: "viewer", member: "member", admin: "admin" } satisfies Record<Role, string>,
  },

  firstSteps: {
    noNodes: "No nodes yet",
    noNodesHint:
      "The hub is running. Add your GPU machines in one of these ways; they appear here within seconds.",
    ways: {
      agent: {
        heading: "Run the agent on each GPU machine",
        hint: "Shows the most and costs the least. Create a join token on the hub's machine, copy the file to the GPU machine, and start the agent there.",
      },
      ssh: {
        heading: "Connect over SSH",
        hint: "Nothing to install on the machines. List them in gpuherd.toml and restart the hub.",
      },
      imported: {
        heading: "Import from another tool",
        hint: "Reads the host lists, inventories and settings of other monitors and writes a configuration.",
      },
      demo: {
        heading: "Try the demo first",
        hint: "A simulated herd; no GPU needed.",
      },
    },
    commands: {
      token: "gpuherd token create > token.txt",
      agent: (hub: string): string => `gpuherd agent --hub ${hub} --join-token-file token.txt`,
      ssh: '[[nodes]]\nhosts = ["gpu01", "gpu02"]\nreach = { by = "ssh", user = "monitor" }',
      import: "gpuherd import hosts.txt",
    },
  },
} as const;
